"""What servers say on stderr: bounded in memory and on disk."""

from __future__ import annotations

from pathlib import Path

from evercontext.catalog.server_log import (
    KEPT_LINES,
    LARGEST_FILE,
    ServerLog,
    end_of_log,
    read_log,
    read_on,
)
from tests.catalog.world import odd, run, servers


def test_the_last_lines_are_kept(tmp_path: Path) -> None:
    log = ServerLog("one", tmp_path)
    for number in range(KEPT_LINES + 5):
        log.append(f"line {number}")
    assert next(iter(log)) == "line 5"
    assert read_log(tmp_path, "one")[-1].endswith(f"line {KEPT_LINES + 4}")
    assert read_log(tmp_path, "nobody") == []


def test_a_server_that_talks_for_ever_fills_no_disk(tmp_path: Path) -> None:
    log = ServerLog("one", tmp_path)
    for _ in range(20):
        log.extend(["x" * 2_000] * KEPT_LINES)
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert size < 2 * (LARGEST_FILE + 2_100 * KEPT_LINES)


def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "one.log").symlink_to(tmp_path / "elsewhere")
    log = ServerLog("one", tmp_path)
    log.append("said")
    assert list(log) == ["said"]
    assert not (tmp_path / "elsewhere").exists()


async def test_stderr_of_a_server_is_there_after_it_ended(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("one")) as opened:
        await run(opened, "one:echo", text="x")
    assert read_log(tmp_path / "logs", "one")[-1].endswith("started good")


async def test_a_server_that_prints_its_credentials_leaves_none_of_them(tmp_path: Path) -> None:
    secret = "k3y-of-the-server-77"
    async with servers(tmp_path, odd("one", secret, env={"API_KEY": secret})) as opened:
        await run(opened, "one:echo", text="x")
    assert read_log(tmp_path / "logs", "one")[-1].endswith("started [redacted]")


def test_what_comes_later_is_read_on(tmp_path: Path) -> None:
    log = ServerLog("one", tmp_path)
    assert read_on(tmp_path, "one", end_of_log(tmp_path, "one")) == ([], (0, 0))
    log.append("first")
    place = end_of_log(tmp_path, "one")
    log.extend(["second", "third"])
    lines, place = read_on(tmp_path, "one", place)
    assert [line.split(" ", 1)[1] for line in lines] == ["second", "third"]
    assert read_on(tmp_path, "one", place)[0] == []
    (tmp_path / "one.log").replace(tmp_path / "one.old")
    log.append("after the turn")
    assert read_on(tmp_path, "one", place)[0][0].endswith("after the turn")
