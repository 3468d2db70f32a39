"""One served world for all tests of the console, and a browser where there is one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.server.console.visit import Visit
from tests.server.console.world import Served, World, serving

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


@contextmanager
def environment(**given: str) -> Iterator[None]:
    """Set variables for as long as a fixture of a wider scope than a test lives."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A home with real data in it."""
    folder: Path = tmp_path_factory.mktemp("console")
    made = World(folder)
    with environment(USE_MOCK_EVALUATOR="true", HOME=str(folder), EC_HOME=str(made.home)):
        asyncio.run(made.fill())
    return made


@pytest.fixture(scope="module")
def served(world: World) -> Iterator[Served]:
    """A real server over that home."""
    nowhere = dict.fromkeys(_PROXIES, "http://127.0.0.1:9")
    with serving(world, HOME=str(world.folder), **nowhere) as running:
        yield running


@pytest.fixture(scope="module")
def visit(served: Served, world: World) -> Iterator[Visit]:
    """Somebody who came in through the link."""
    with Visit(served.url) as visitor:
        visitor.enter(world)
        yield visitor
