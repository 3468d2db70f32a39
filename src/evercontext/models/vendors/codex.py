"""Run Codex CLI: arguments by version, private configuration, event stream."""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evercontext.domain.model import Usage
from evercontext.models.vendors.private_home import PrivateHome, read_small
from evercontext.models.vendors.program import Facts, Probes
from evercontext.models.vendors.reply import VendorReply, event_of, events, number, table

_DEFAULT_WORDS = ("exec", "--full-auto")
_TOOLS = re.compile(
    r"(?:^|_)(?:agents?|apps?|artifacts?|browser|code_mode|collab|computer|exec|fanout|goals?|hooks"
    r"|image|js|mcp|memories|multi_agent|plugins?|repl|search|shell|skills?|sleep|tools?|web|"
    r"view_image|workspace|patch|snapshot|automation)(?:_|$)"
)
"""Names of features that let the model do something besides writing."""
_TEXT_ITEMS = ("agent_message", "reasoning", "error", "todo_list")
"""A to-do list is the model's note to itself; everything else in the stream is an action."""
_STATUS = re.compile(r"\b(?:status|error|HTTP):? (\d{3})\b", re.IGNORECASE)
_LIMIT = re.compile(r"usage limit|rate limit|quota", re.IGNORECASE)
_LOGIN = re.compile(r"not logged in|codex login|log ?in again|refresh token|sign in", re.IGNORECASE)

_MODEL_KEYS = (
    "model",
    "model_provider",
    "model_reasoning_effort",
    "model_reasoning_summary",
    "model_verbosity",
    "model_context_window",
    "model_max_output_tokens",
    "service_tier",
    "openai_base_url",
    "chatgpt_base_url",
    "preferred_auth_method",
    "forced_login_method",
    "forced_chatgpt_workspace_id",
)
_PROVIDER_KEYS = (
    "name",
    "base_url",
    "env_key",
    "env_key_instructions",
    "experimental_bearer_token",
    "wire_api",
    "query_params",
    "http_headers",
    "env_http_headers",
    "request_max_retries",
    "stream_max_retries",
    "stream_idle_timeout_ms",
    "requires_openai_auth",
)
_OURS = """\
approval_policy = "never"
sandbox_mode = "read-only"
web_search = "disabled"
check_for_update_on_startup = false
include_plan_tool = false
include_apply_patch_tool = false
project_doc_max_bytes = 0
cli_auth_credentials_store = "file"
[history]
persistence = "none"
[analytics]
enabled = false
[feedback]
enabled = false
[tools]
web_search = false
view_image = false
[shell_environment_policy]
inherit = "none"
"""


@dataclass(frozen=True, slots=True)
class Codex:
    """``codex exec`` as a text model; ``words`` are a user's own arguments for it."""

    model: str = ""
    words: tuple[str, ...] = ()
    name: str = "codex-cli"
    program: str = "codex"
    install: str = "npm install -g @openai/codex"
    login: str = "Run: codex login"
    oldest: tuple[int, int, int] = (0, 50, 0)
    probes: Probes = Probes(("exec", "--help"), ("features", "list"))
    variables: tuple[str, ...] = (
        "OPENAI_API_KEY",
        "CODEX_API_KEY",
        "CODEX_ACCESS_TOKEN",
        "OPENAI_BASE_URL",
        "OPENAI_ORGANIZATION",
        "OPENAI_PROJECT",
        "CODEX_HOME",
    )
    files: tuple[str, ...] = ("CODEX_CA_CERTIFICATE",)
    copied: tuple[str, ...] = ("installation_id",)
    returned: tuple[str, ...] = ("auth.json",)

    def user_folder(self, environment: Mapping[str, str]) -> Path:
        """Return the folder in which the user's own Codex keeps its files."""
        own = environment.get("CODEX_HOME")
        return Path(own) if own else Path(environment.get("HOME", "/")) / ".codex"

    def configured_variables(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the variables that the provider in the user's config.toml reads."""
        provider = _provider(_config(self.user_folder(environment)))
        names = [provider.get("env_key"), *table(provider.get("env_http_headers")).values()]
        return tuple(name for name in names if isinstance(name, str))

    def misfit(self, facts: Facts) -> str | None:
        """Return why this version cannot be used, None if it can."""
        if not facts.version:
            return None if self.words else "it does not name its version"
        missing = {"--json", "--skip-git-repo-check", "--sandbox"} - set(facts.options)
        if facts.at_least(*self.oldest) and not missing:
            return None
        return "it is too old, 0.50.0 is the oldest that fits"

    def prepare(
        self, home: PrivateHome, user: Path, environment: Mapping[str, str]
    ) -> dict[str, str]:
        """Write the private configuration; return the variables of the child that change."""
        text = private_config(_config(user))
        (home.settings / "config.toml").write_text(text, encoding="utf-8")
        return {"CODEX_HOME": str(home.settings), "HOME": str(home.root)}

    def arguments(self, facts: Facts, home: PrivateHome, schema: Path | None) -> list[str]:
        """Return the arguments that this version understands; ``-`` reads the prompt from stdin."""
        if not facts.version:
            return list(self.words)
        words = [word for word in self.words or ("exec",) if word != "-"]
        if self.words == _DEFAULT_WORDS and "--full-auto" not in facts.options:
            words = ["exec"]
        fixed = ["--json", "--skip-git-repo-check", "--ephemeral", "--ignore-rules"]
        words += [word for word in fixed if word in facts.options and word not in words]
        if not {"--sandbox", "-s"} & set(words):
            words += ["--sandbox", "read-only"]
        for feature, is_on in facts.features.items():
            words += ["--disable", feature] if is_on and _TOOLS.search(feature) else []
        words += ["--model", self.model] if self.model else []
        words += ["--output-schema", str(schema)] if schema else []
        return [*words, "-"]

    def stdin(self, prompt: str) -> str:
        """Return the prompt as the program takes it."""
        return prompt

    def action(self, event: Mapping[str, Any]) -> str | None:
        """Return what the program does besides writing, None for text, reasoning and usage."""
        if not str(event.get("type")).startswith("item."):
            return None
        kind = str(table(event.get("item")).get("type"))
        return None if kind in _TEXT_ITEMS else kind

    def read(self, output: str, error_output: str, exit_code: int, facts: Facts) -> VendorReply:
        """Fold the events; without a version there are none, and the output is the answer."""
        if not facts.version and exit_code == 0:
            return VendorReply(output)
        text: str | None = None
        error: str | None = None
        thoughts: list[str] = []
        usage: Usage | None = None
        for event in events(output):
            item = table(event.get("item"))
            match event.get("type"), item.get("type"):
                case "item.completed", "agent_message":
                    text = str(item.get("text") or "")
                case "item.completed", "reasoning":
                    thoughts.append(str(item.get("text") or ""))
                case "turn.completed", _:
                    usage = _usage(table(event.get("usage")))
                case "turn.failed", _:
                    error = str(table(event.get("error")).get("message"))
                case "error", _:
                    error = error or str(event.get("message"))
        if text is not None and usage is not None and exit_code == 0:
            return VendorReply(text, "\n".join(thoughts), usage)
        return _failure(error or _last_error(error_output))


def private_config(config: Mapping[str, Any]) -> str:
    """Return a config.toml with the model and provider of the user's, and none of its tools."""
    merged = _merged(config)
    lines = [f"{key} = {_toml(merged[key])}" for key in _MODEL_KEYS if _is_plain(merged.get(key))]
    provider = _provider(config)
    if provider:
        lines += ["", _OURS, f"[model_providers.{_toml(merged['model_provider'])}]"]
        lines += [f"{key} = {_toml(provider[key])}" for key in _PROVIDER_KEYS if key in provider]
        return "\n".join(lines) + "\n"
    return "\n".join([*lines, "", _OURS])


def _config(folder: Path) -> dict[str, Any]:
    content = read_small(folder / "config.toml") or b""
    with contextlib.suppress(ValueError):
        return tomllib.loads(content.decode("utf-8"))
    return {}


def _merged(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the top level with the chosen profile laid over it."""
    profile = table(table(config.get("profiles")).get(str(config.get("profile"))))
    return {**config, **profile}


def _provider(config: Mapping[str, Any]) -> Mapping[str, Any]:
    name = str(_merged(config).get("model_provider"))
    return table(table(config.get("model_providers")).get(name))


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _toml(value: Any) -> str:
    """Return a value as TOML; its basic strings are those of JSON."""
    if isinstance(value, Mapping):
        pairs = (f"{_toml(str(key))} = {_toml(part)}" for key, part in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def _usage(usage: Mapping[str, Any]) -> Usage:
    counts = ("input_tokens", "output_tokens", "cached_input_tokens")
    return Usage(*(number(usage.get(name)) for name in counts))


def _last_error(error_output: str) -> str:
    """Return the line that tells most: a usage error stands first, a crash last."""
    lines = [line.strip() for line in error_output.splitlines() if line.strip()]
    usage = [line for line in lines if line.startswith("error:")]
    return (usage[:1] or lines[-1:] or ["no answer in its output"])[0]


def _failure(error: str) -> VendorReply:
    body = event_of(error)
    if body is not None and "error" in body:
        # Of a rejected request the server's own answer is passed on, without its status.
        return VendorReply(None, error=str(table(body["error"]).get("message")), status=400)
    match = _STATUS.search(error)
    status = int(match[1]) if match else None
    if status is None and _LOGIN.search(error):
        status = 401
    return VendorReply(None, error=error, status=status, limited=bool(_LIMIT.search(error)))
