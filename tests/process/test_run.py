"""The runner, against real processes."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from evercontext.errors import ProcessProblem, ProcessTimeout, ProgramMissing
from evercontext.process.environment import filtered
from evercontext.process.run import Completed, run

PYTHON = sys.executable
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(sys.argv[1] + ".new", "w") as file:
            file.write(str(os.getpid()))
        os.rename(file.name, sys.argv[1])  # whole as soon as it is there
        time.sleep(60)
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
"""


def alive(pid: int) -> bool:
    """A zombie that nobody reaped yet counts as dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def gone(pid: int) -> bool:
    for _ in range(1_500):
        if not alive(pid):
            return True
        await asyncio.sleep(0.02)
    return False


async def python(code: str, *args: str, cwd: Path, **options: object) -> Completed:
    options = {"timeout": 20.0, **options}
    return await run([PYTHON, "-c", code, *args], cwd=cwd, **options)  # type: ignore[arg-type]


async def test_output_code_and_streams(tmp_path: Path) -> None:
    done = await python(
        "import sys; print('こんにちは'); print('e', file=sys.stderr); sys.exit(3)",
        cwd=tmp_path,
        env={"PATH": os.defpath, "PYTHONIOENCODING": "utf-8"},
    )
    assert (done.exit_code, done.text, done.error_text) == (3, "こんにちは\n", "e\n")
    assert not done.ok
    assert done.signal is None
    with pytest.raises(ProcessProblem, match="ended with 3: e"):
        done.check()


async def test_working_directory_is_the_one_given(tmp_path: Path) -> None:
    done = await python("import os; print(os.getcwd())", cwd=tmp_path)
    assert done.check().text.strip() == str(tmp_path)


@pytest.mark.case(114)
@pytest.mark.parametrize("content", ["--help", "-rf /", "$(touch x) `id` \"'; & | >", "日本語\n"])
async def test_content_travels_by_stdin_and_is_never_read_as_options(
    tmp_path: Path, content: str
) -> None:
    done = await run(["cat"], cwd=tmp_path, timeout=10, stdin=content.encode())
    assert done.text == content
    assert list(tmp_path.iterdir()) == []


@pytest.mark.case(114)
async def test_arguments_meet_no_shell(tmp_path: Path) -> None:
    done = await run(["printf", "%s", "$(touch x);`id`&|>y"], cwd=tmp_path, timeout=10)
    assert done.text == "$(touch x);`id`&|>y"
    assert list(tmp_path.iterdir()) == []


async def test_large_input_and_output_do_not_deadlock(tmp_path: Path) -> None:
    data = os.urandom(700_000)
    done = await run(["cat"], cwd=tmp_path, timeout=20, stdin=data)
    assert done.stdout == data


async def test_a_child_that_reads_no_input_is_fine(tmp_path: Path) -> None:
    done = await run(["true"], cwd=tmp_path, timeout=10, stdin=b"x" * 1_000_000)
    assert done.ok


async def test_without_input_stdin_is_empty_and_not_ours(tmp_path: Path) -> None:
    assert (await run(["cat"], cwd=tmp_path, timeout=10)).stdout == b""


@pytest.mark.contract("L15")
async def test_missing_program_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ProgramMissing, match="no-such-program"):
        await run(["no-such-program-here"], cwd=tmp_path, timeout=10)


async def test_missing_directory_and_nul_are_explained(tmp_path: Path) -> None:
    with pytest.raises(ProcessProblem, match="no such working directory"):
        await run(["true"], cwd=tmp_path / "no", timeout=10)
    with pytest.raises(ProcessProblem, match="cannot start"):
        await run(["echo", "a\0b"], cwd=tmp_path, timeout=10)


@pytest.mark.contract("L13")
@pytest.mark.case(112)
async def test_timeout_kills_the_whole_tree(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    for seconds in (2.0, 8.0, 32.0):  # a busy machine may need long to come as far as the daemon
        done = await python(
            DAEMON + "\ntime.sleep(60)", str(pid_file), cwd=tmp_path, timeout=seconds
        )
        if pid_file.exists():
            break
    assert done.timed_out
    assert done.signal == 9
    assert await gone(int(pid_file.read_text()))
    with pytest.raises(ProcessTimeout):
        done.check()


@pytest.mark.case(112)
async def test_a_grandchild_that_holds_the_pipe_does_not_hang_us(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    done = await python(DAEMON + "\nprint('bye')", str(pid_file), cwd=tmp_path, timeout=50.0)
    assert done.ok
    assert done.text == "bye\n"
    assert await gone(int(pid_file.read_text()))


async def test_a_background_job_ends_with_its_command(tmp_path: Path) -> None:
    done = await run(["sh", "-c", "sleep 60 & echo $!"], cwd=tmp_path, timeout=30)
    assert done.ok
    assert await gone(int(done.text))


@pytest.mark.case(73)
async def test_a_flood_is_cut_and_stopped(tmp_path: Path) -> None:
    done = await run(["yes", "x" * 1000], cwd=tmp_path, timeout=30)
    assert done.truncated
    assert not done.ok
    assert done.signal == 9
    assert b"[output cut at 1048576 bytes" in done.stdout[-80:]
    assert len(done.stdout) < 1024 * 1024 + 100


async def test_the_cap_counts_both_streams(tmp_path: Path) -> None:
    code = "import sys\nwhile 1:\n print('o'*99)\n print('e'*99, file=sys.stderr)"
    done = await python(code, cwd=tmp_path, max_output=50_000)
    assert done.truncated
    assert len(done.stdout) + len(done.stderr) < 50_200


async def test_cancellation_kills_the_tree(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    task = asyncio.create_task(
        python(DAEMON + "\ntime.sleep(60)", str(pid_file), cwd=tmp_path, timeout=60.0)
    )
    while not pid_file.exists():
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone(int(pid_file.read_text()))


async def test_output_is_heard_as_it_comes(tmp_path: Path) -> None:
    heard: list[tuple[str, bytes]] = []
    await run(
        ["sh", "-c", "echo one; echo two >&2"],
        cwd=tmp_path,
        timeout=10,
        on_output=lambda name, data: heard.append((name, data)),
    )
    assert sorted(heard) == [("stderr", b"two\n"), ("stdout", b"one\n")]


async def test_a_listener_that_fails_ends_the_command(tmp_path: Path) -> None:
    def listen(_name: str, _data: bytes) -> None:
        raise RuntimeError("full")

    with pytest.raises(RuntimeError, match="full"):
        await run(["yes"], cwd=tmp_path, timeout=30, on_output=listen)


@pytest.mark.case(112)
@pytest.mark.slow
async def test_a_thousand_runs_leave_no_descriptor_and_no_zombie(tmp_path: Path) -> None:
    await run(["true"], cwd=tmp_path, timeout=10)
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(50):
        done = await asyncio.gather(
            *(run(["true"], cwd=tmp_path, timeout=30, stdin=b"x") for _ in range(20))
        )
        assert all(one.ok for one in done)
    assert len(os.listdir("/proc/self/fd")) <= len(before)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.case(100, 135)
async def test_the_child_sees_the_allow_list_and_no_secret(tmp_path: Path) -> None:
    ours = {
        "PATH": os.defpath,
        "LC_ALL": "C.UTF-8",
        "LC_SECRET": "canary",
        "OPENAI_API_KEY": "canary",
        "GITHUB_TOKEN": "canary",
        "CLIENT_SECRET": "canary",
        "DATABASE_URL": "canary",
        "HOME": "/home/someone",
    }
    done = await run(["env"], cwd=tmp_path, timeout=10, env=filtered(ours))
    assert "canary" not in done.text
    assert "LC_ALL=C.UTF-8" in done.text
    assert "HOME=/home/someone" in done.text


@pytest.mark.case(100)
async def test_a_variable_handed_over_by_name_arrives(tmp_path: Path) -> None:
    env = filtered({"GEMINI_API_KEY": "given", "OTHER_KEY": "canary"}, extra=["GEMINI_API_KEY"])
    done = await run(["env"], cwd=tmp_path, timeout=10, env=env)
    assert "GEMINI_API_KEY=given" in done.text
    assert "canary" not in done.text


async def test_without_an_environment_the_child_gets_a_bare_one(tmp_path: Path) -> None:
    done = await run(["env"], cwd=tmp_path, timeout=10)
    names = {line.split("=")[0] for line in done.text.splitlines()}
    assert names == {"PATH", "LANG", "EVERCONTEXT_CHILD"}
