"""Set up the home of a user who has a vendor's program, logged in at a scripted API."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.real.install import Installed

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


def codex_user(installed: Installed, api: str) -> dict[str, str]:
    """Write ~/.codex for a provider with a key of its own; return the environment."""
    config = f"""\
model = "gpt-5"
model_provider = "loopback"
[model_providers.loopback]
name = "loopback"
base_url = "{api}/v1"
env_key = "LOOPBACK_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
    write_file(".codex/config.toml", config)
    return {**environment(installed), "LOOPBACK_KEY": "k"}


def gemini_user(installed: Installed, api: str) -> dict[str, str]:
    """Write ~/.gemini for a key; return the environment."""
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    write_file(".gemini/settings.json", json.dumps(settings))
    addresses = {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": api}
    return {**environment(installed), **addresses}


USERS = {"codex": codex_user, "gemini": gemini_user}


def environment(installed: Installed) -> dict[str, str]:
    """Return what changes in the environment of a user who has the program installed.

    Proxies are taken away: some programs send what is meant for loopback through them.
    """
    return {"PATH": installed.path, **dict.fromkeys(_PROXIES, "")}


def files(folder: str) -> dict[str, bytes]:
    """Return the files in a folder of the test's home, by name."""
    root = Path(os.environ["HOME"], folder)
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def write_file(name: str, text: str) -> None:
    """Write a file of the test's home."""
    path = Path(os.environ["HOME"], name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
