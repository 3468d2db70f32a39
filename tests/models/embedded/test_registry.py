from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from evercontext.errors import ModelUnavailable
from evercontext.models.embedded.registry import Registry
from evercontext.models.embedded.weights import pull
from tests.models.embedded.test_weights import BYTES, TINY, make_wheel


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """A package index on loopback that offers one small wheel."""
    page = tmp_path / "index" / "simple" / "tiny-weights"
    page.mkdir(parents=True)
    wheel = make_wheel(page)
    page.joinpath("index.html").write_text(
        f'<a href="other-1.0.tar.gz">other</a>\n<a href="{wheel.name}">{wheel.name}</a>'
    )
    handler = partial(_Quiet, directory=str(tmp_path / "index"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/simple"
    server.shutdown()
    thread.join()
    server.server_close()


def environment(index: str) -> dict[str, str]:
    own = {"PIP_INDEX_URL": index, "UV_INDEX_URL": index, "PIP_CONFIG_FILE": os.devnull}
    # The wheel must come from the index of the test, not from a cache of the machine.
    own |= {"PIP_NO_CACHE_DIR": "1", "UV_NO_CACHE": "1", "PIP_EXTRA_INDEX_URL": ""}
    return {**os.environ, **own, "PIP_FIND_LINKS": ""}


NEEDS_PIP = pytest.mark.skipif(find_spec("pip") is None, reason="this environment has no pip")


def tells_progress() -> bool:
    """Whether this environment's pip is one that can say how far it is (24.1 and later)."""
    major, minor = (int(part) for part in version("pip").split(".")[:2])
    return (major, minor) >= (24, 1)


@NEEDS_PIP
async def test_pip_brings_the_wheel_from_the_users_index(tmp_path: Path, index: str) -> None:
    seen: list[tuple[int, int]] = []
    registry = Registry(
        environment(index), lambda done, expected: seen.append((done, expected)), uv="/no/uv"
    )
    pulled = await pull(tmp_path / "home", registry, TINY)
    assert pulled.path.read_bytes() == BYTES
    if tells_progress():
        assert seen[-1][0] == seen[-1][1] > 0


async def test_without_pip_the_index_is_asked_directly(tmp_path: Path, index: str) -> None:
    seen: list[tuple[int, int]] = []
    registry = Registry(
        environment(index),
        lambda done, expected: seen.append((done, expected)),
        python="/no/python",
        uv="/no/uv",
    )
    pulled = await pull(tmp_path / "home", registry, TINY)
    assert pulled.path.read_bytes() == BYTES
    assert seen[-1][0] == seen[-1][1] > 0


@pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed")
async def test_without_pip_uv_is_asked_first(tmp_path: Path, index: str) -> None:
    registry = Registry(environment(index))
    found = await registry._by_uv("tiny-weights", "1.0", tmp_path)
    assert (found / TINY.member).read_bytes() == BYTES


@NEEDS_PIP
async def test_an_index_without_the_package_is_said(tmp_path: Path, index: str) -> None:
    registry = Registry(environment(index), uv="/no/uv")
    with pytest.raises(ModelUnavailable, match=r"pip: ERROR: .*missing-weights"):
        await registry.fetch("missing-weights", "1.0", tmp_path)


async def test_an_unreachable_index_is_called_unreachable(tmp_path: Path) -> None:
    registry = Registry(environment("http://127.0.0.1:9/simple"), uv="/no/uv")
    with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1.* cannot be reached"):
        await registry.fetch("tiny-weights", "1.0", tmp_path)
