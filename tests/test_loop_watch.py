from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import loop_watch
from tests.conftest import WATCH, passes_alone

SPIN = """
async def work(seconds):
    spin(seconds)

def spin(seconds):
    import time
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
"""


def spinning(place: Path, name: str = "work") -> Callable[[float], Any]:
    """A function that takes processor time, written in a file at ``place``."""
    names: dict[str, Callable[[float], Any]] = {}
    exec(compile(SPIN, str(place), "exec"), names)
    return names[name]


OURS = Path(__file__).parent.parent / "src" / "evercontext" / "example.py"


async def test_a_callback_of_ours_that_takes_long_is_seen() -> None:
    await spinning(OURS)(10 * loop_watch.LIMIT)
    # Only the end of a callback is judged.
    await _next_callback()
    assert [stall.split()[0] for stall in WATCH.taken()] == ["example.py:spin"]


async def test_what_a_test_does_is_its_own_affair() -> None:
    await spinning(Path(__file__))(10 * loop_watch.LIMIT)
    spinning(OURS, "spin")(10 * loop_watch.LIMIT)
    await _next_callback()
    assert WATCH.taken() == []


async def test_waiting_is_not_working() -> None:
    names: dict[str, Callable[[], Any]] = {}
    waiting = "async def wait():\n import time\n time.sleep(0.3)"
    exec(compile(waiting, str(OURS), "exec"), names)
    await names["wait"]()
    await _next_callback()
    assert WATCH.taken() == []


@pytest.mark.slow
def test_a_test_that_runs_again_has_to_pass(tmp_path: Path) -> None:
    """One that was skipped or never ended counted as passed, or kept all others waiting."""
    (tmp_path / "test_it.py").write_text(
        "import time, pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert 0\n"
        "@pytest.mark.skip\ndef test_away(): pass\n"
        "def test_slow(): time.sleep(600)\n"
    )
    names = ("good", "bad", "away")
    passed = [name for name in names if passes_alone(f"test_it.py::test_{name}", tmp_path)]
    assert passed == ["good"]
    assert not passes_alone("test_it.py::test_slow", tmp_path, seconds=1)


async def _next_callback() -> None:
    await asyncio.sleep(0)
