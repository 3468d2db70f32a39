"""Help to test programs that use EverContext: real parts, small and quick.

No network, no key: a store in memory, a model that plays a script, a tiny git repository, and a
complete application in a temporary folder.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from evercontext import settings as sources
from evercontext.app import EverContext
from evercontext.models.scripted import ScriptedModel
from evercontext.storage.sqlite import SqliteStore

_GIT = (
    "git",
    "-c",
    "user.name=Test",
    "-c",
    "user.email=test@example.invalid",
    "-c",
    "commit.gpgsign=false",
    "-c",
    "init.defaultBranch=main",
)


@asynccontextmanager
async def memory_store() -> AsyncIterator[SqliteStore]:
    """A store with every table that is gone when the block ends."""
    store = await SqliteStore.in_memory()
    try:
        yield store
    finally:
        await store.close()


def write_script(path: Path, turns: Iterable[Mapping[str, Any]]) -> str:
    """Write a script and return the name of the model that plays it."""
    lines = [json.dumps(dict(turn), ensure_ascii=False) for turn in turns]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"scripted:{path}"


def scripted_model(path: Path, turns: Iterable[Mapping[str, Any]]) -> ScriptedModel:
    """A model that answers with these turns, one after the other."""
    write_script(path, turns)
    return ScriptedModel.from_file(path)


def tiny_repository(path: Path, files: Mapping[str, str]) -> Path:
    """A git repository of these files in one commit."""
    path.mkdir(parents=True, exist_ok=True)
    git(path, "init", "--quiet")
    for name, content in files.items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    git(path, "add", "--all")
    git(path, "commit", "--quiet", "--allow-empty", "-m", "first")
    return path


def git(path: Path, *arguments: str) -> str:
    """Run git in a directory, untouched by anybody's configuration."""
    environment = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    ended = subprocess.run(
        [*_GIT, *arguments],
        cwd=path,
        capture_output=True,
        text=True,
        check=True,
        env={**sources.process_environment(), **environment},
    )
    return ended.stdout


@asynccontextmanager
async def application(folder: Path, **flags: Any) -> AsyncIterator[EverContext]:
    """Open EverContext over ``folder/project``, with its home in ``folder/home``."""
    root = folder / "project"
    root.mkdir(parents=True, exist_ok=True)
    environment = {"EC_HOME": str(folder / "home")}
    settings = sources.load({"root": str(root), **flags}, environment=environment, cwd=folder)
    async with EverContext.open(settings) as app:
        yield app


house = application
"""The former name."""
