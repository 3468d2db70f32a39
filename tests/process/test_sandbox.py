"""The cage, attacked in both layers; and what must still work in it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evercontext.errors import NoSandbox, ProgramMissing
from evercontext.process import seccomp
from evercontext.process.resource_limits import Limits
from evercontext.process.run import Completed, run
from evercontext.process.sandbox import Layer, available, choose, mounts_refused
from tests.cli.command import EVERCONTEXT
from tests.process.probes import PROBES
from tests.process.world import ENVIRONMENT, World, made

WORKS = {finding.layer: finding for finding in available()}

_FREE_FOR_ANYBODY = """
    create_outside overwrite_outside read_outside read_ssh_key read_our_home read_hidden_file
    symlink_out hard_link_out rename_over_outside move_outside_in truncate_outside unlink_outside
    chmod_outside chmod_outside_through_a_link touch_outside own_outside write_git_hook
    append_git_config delete_git rename_git chmod_git write_agent_config replace_agent_config
    connect_tcp send_udp connect_unix_socket connect_unix_socket_in_the_tree
    connect_abstract_socket datagram_from_a_pair ask_dns bash_dev_tcp read_foreign_environment
    walk_foreign_root kill_outside limit_foreign_process attach_shared_memory set_user_id_file
    attach_shared_memory_by_number remove_shared_memory read_foreign_message set_foreign_semaphore
    pin_foreign_process idle_foreign_process slow_the_disk_of_a_foreign_process
    slow_a_group_of_processes slow_the_disk_of_a_group_of_processes
    kill_the_supervisor chmod_what_may_be_read touch_what_may_be_read
    hard_link_git move_hidden_file link_into_git rename_into_git directory_in_git
    write_git_from_inside chmod_git_through_a_link touch_git write_git_of_a_moved_folder
    write_hidden_file
"""
"""What works without a cage for every user: the probes must be able to find a hole."""

_ON_PROTECTED_PLACES = """
    write_git_hook append_git_config delete_git rename_git chmod_git write_agent_config
    replace_agent_config hard_link_git move_hidden_file read_hidden_file link_into_git
    rename_into_git directory_in_git write_git_from_inside chmod_git_through_a_link touch_git
    write_git_of_a_moved_folder write_hidden_file
"""
"""What the Landlock layer holds by mounts where it can."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with made(tmp_path) as world:
        yield world


@pytest.fixture(params=[Layer.BUBBLEWRAP, Layer.LANDLOCK])
def layer(request: pytest.FixtureRequest) -> Layer:
    layer: Layer = request.param
    if not WORKS[layer].works:
        pytest.skip(f"{layer}: {WORKS[layer].why}")
    return layer


async def shell(world: World, layer: Layer, line: str, **changes: object) -> Completed:
    return await run(
        ["sh", "-c", line],
        cwd=world.root,
        timeout=30,
        env=ENVIRONMENT,
        sandbox=world.sandbox(layer, **changes),
    )


@pytest.mark.case(68, 69, 70, 72)
@pytest.mark.parametrize("name", sorted(PROBES))
async def test_the_attack_is_blocked_and_leaves_no_trace(
    world: World, layer: Layer, name: str
) -> None:
    before = world.snapshot()
    done = await world.attack(name, layer)
    assert "ESCAPED" not in done.text
    assert not done.timed_out
    blocked = done.exit_code == 3 and "blocked" in done.text
    stopped = done.reached or done.exit_code in (-9, -24, 137, 152)
    assert blocked or stopped, done
    assert world.snapshot() == before


@pytest.mark.case(68, 69)
@pytest.mark.parametrize("name", _ON_PROTECTED_PLACES.split())
async def test_protected_places_hold_without_mounts_too(world: World, name: str) -> None:
    if not WORKS[Layer.LANDLOCK].works:
        pytest.skip(WORKS[Layer.LANDLOCK].why)
    before = world.snapshot()
    done = await world.attack(name, Layer.LANDLOCK, own_mounts=False)
    assert (done.exit_code, "blocked" in done.text) == (3, True), done
    assert world.snapshot() == before


NEW_ENTRIES = """set -e
mkdir build tests; echo x > tests/y; touch top; mv top renamed; rm -r build; ln -s tests also
python3 -m venv --without-pip .venv; .venv/bin/python -c 'print(6*7)'
mkdir -p part/below; echo x > part/below/z; sed -i s/x/y/ tests/y; cat tests/y
"""


async def test_new_entries_are_made_beside_protected_ones(world: World, layer: Layer) -> None:
    """S4: a command builds a project from nothing in a git repository."""
    if layer is Layer.LANDLOCK and (refused := mounts_refused()):
        pytest.skip(refused)
    before = world.snapshot()
    done = await shell(world, layer, NEW_ENTRIES)
    assert (done.exit_code, done.text) == (0, "42\ny\n"), done.error_text
    made = {"tests", "renamed", "also", ".venv"}
    assert made <= {path.name for path in world.root.iterdir()}
    assert (world.root / "part/below/z").read_text() == "x\n"
    assert world.snapshot() == before


async def test_a_secret_is_closed_and_stays_the_users(world: World, layer: Layer) -> None:
    done = await shell(world, layer, "cat .env; rm -f .env; mv .env x; echo y > .env; true")
    assert "canary" not in done.text
    assert (world.root / ".env").read_text() == "canary"
    assert (world.root / ".env").stat().st_nlink == 1


NO_NAMESPACES = """
echo 0 > /proc/sys/user/max_mnt_namespaces; echo 0 > /proc/sys/user/max_user_namespaces
exec "$@"
"""


def test_without_namespaces_it_is_said_what_cannot_be_made(tmp_path: Path) -> None:
    """S4: where nothing can hold .git by a mount, doctor and results say so and name the cure."""
    if not WORKS[Layer.LANDLOCK].works:
        pytest.skip(WORKS[Layer.LANDLOCK].why)
    script = """
from evercontext.process.sandbox import Layer, available, limitation
for finding in available():
    print(finding.layer, finding.works, finding.why, finding.fix, sep="|")
print(limitation(Layer.LANDLOCK))
"""
    argv = ["unshare", "-Ur", "sh", "-c", NO_NAMESPACES, "sh", sys.executable, "-c", script]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, check=False)
    if done.returncode and "unshare" in done.stderr:
        pytest.skip(f"no user namespace for the test: {done.stderr.strip()}")
    lines = done.stdout.splitlines()
    assert "landlock|True" in lines[1]
    assert "nothing can be created in a directory that holds .git" in lines[1]
    assert "Install bubblewrap, or allow unprivileged user namespaces" in lines[1]
    assert lines[2].startswith("sandbox: nothing can be created")


@pytest.mark.parametrize("name", _FREE_FOR_ANYBODY.split())
async def test_without_a_cage_the_same_attack_works(world: World, name: str) -> None:
    done = await world.attack(name, Layer.NONE)
    killed = name == "kill_the_supervisor" and done.signal == signal.SIGKILL
    assert "ESCAPED" in done.text or killed, done


@pytest.mark.case(68, 135)
async def test_keys_that_lie_beside_a_toolchain_are_not_there(world: World, layer: Layer) -> None:
    keys = (".gem/credentials", ".nuget/NuGet/NuGet.Config", ".dotnet/corefx/my/key.pfx")
    tools = (".gem/ruby/gem.rb", ".nuget/packages/a.txt", ".dotnet/sdk/version")
    for name, text in [*((key, "canary") for key in keys), *((tool, "compiler") for tool in tools)]:
        (world.home / name).parent.mkdir(parents=True, exist_ok=True)
        (world.home / name).write_text(text)
    paths = " ".join(str(world.home / name) for name in (*keys, *tools))
    done = await shell(world, layer, f"cat {paths}")
    assert done.text.count("compiler") == len(tools)
    assert "canary" not in done.text


@pytest.mark.case(72)
@pytest.mark.parametrize(
    ("name", "reached"), [("fork_bomb", "processes"), ("shared_memory", "memory")]
)
async def test_the_ceiling_that_was_reached_is_named(
    world: World, layer: Layer, name: str, reached: str
) -> None:
    assert (await world.attack(name, layer)).reached == reached


class Unwatched(Limits):
    """Limits whose memory only the control group holds, as if the supervisor came too late."""

    def plan(self) -> dict[str, Any]:
        return {**super().plan(), "memory": 1 << 60}


def holds_memory() -> bool:
    """Tell whether a control group of ours can bound memory on this machine."""
    if not (groups := Limits().cgroups()):
        return False
    directory, name = Path(groups[-1][0]), str(groups[-1][1][-1][0])
    try:
        directory.mkdir()
    except OSError:
        return False
    try:
        return (directory / name).exists()
    finally:
        directory.rmdir()


@pytest.mark.case(72)
async def test_a_ceiling_that_the_kernel_noticed_first_is_named(world: World, layer: Layer) -> None:
    if not holds_memory():
        pytest.skip("no control group can be made here")
    limits = Unwatched(memory=256 << 20)
    assert (await world.attack("shared_memory", layer, limits=limits)).reached == "memory"


async def test_a_daemon_ends_with_its_command(world: World, layer: Layer) -> None:
    await world.attack("daemon", layer)
    beat = world.root / "src/beat"
    last = beat.read_text()
    await asyncio.sleep(0.3)
    assert beat.read_text() == last


@pytest.mark.contract("L13")
async def test_a_timeout_ends_the_cage(world: World, layer: Layer) -> None:
    sandbox = world.sandbox(layer)
    done = await run(["sleep", "600"], cwd=world.root, timeout=1, env=ENVIRONMENT, sandbox=sandbox)
    assert done.timed_out
    assert done.signal == signal.SIGKILL


async def test_cancellation_ends_the_whole_cage(world: World, layer: Layer) -> None:
    beat = world.root / "src/beat"
    line = "setsid sh -c 'while :; do date +%N > src/beat; sleep 0.05; done' & wait"
    task = asyncio.create_task(shell(world, layer, line))
    while not beat.exists() and not task.done():
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    last = beat.read_text()
    await asyncio.sleep(0.3)
    assert beat.read_text() == last


async def test_the_tree_dies_when_we_are_killed(world: World, layer: Layer) -> None:
    script = f"""
import asyncio
from pathlib import Path
from evercontext.process.run import run
from evercontext.process.sandbox import Layer, Sandbox
root = Path({str(world.root)!r})
line = "while :; do date +%N > src/beat; sleep 0.05; done"
sandbox = Sandbox(root, Layer({layer.value!r}))
asyncio.run(run(["sh", "-c", line], cwd=root, timeout=60, sandbox=sandbox))
"""
    ours = subprocess.Popen([sys.executable, "-c", script])
    beat = world.root / "src/beat"
    while not beat.exists() and ours.poll() is None:
        await asyncio.sleep(0.02)
    assert ours.poll() is None
    ours.kill()
    ours.wait()
    deadline = time.monotonic() + 60
    last = None  # not an empty text: `date` may be about to write into it
    while (now := beat.read_text()) != last and time.monotonic() < deadline:
        last = now
        await asyncio.sleep(0.3)
    assert beat.read_text() == last
    scratch = f"evercontext-{ours.pid}-*"
    while list(Path(tempfile.gettempdir()).glob(scratch)) and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    assert not list(Path(tempfile.gettempdir()).glob(scratch))


@pytest.mark.contract("N7")
async def test_a_read_only_cage_changes_nothing_in_the_project(world: World, layer: Layer) -> None:
    line = (
        "echo x > src/new; echo x > top; rm -rf src; mkdir d; cat .git/config; echo t > $TMPDIR/t"
    )
    done = await shell(world, layer, line, read_only=True)
    assert done.ok, done
    assert "[core]" in done.text
    entries = {".git", ".mcp.json", ".env", "part", "src"}
    assert {path.name for path in world.root.iterdir()} == entries
    assert not (world.root / "src/new").exists()


async def test_ordinary_work_goes_on_inside(world: World, layer: Layer) -> None:
    line = """set -e
mkdir -p src/pkg; echo 'print(6*7)' > src/pkg/a.py; chmod 755 src/pkg/a.py; touch -d @0 src/pkg/a.py
python3 src/pkg/a.py; cp -p src/pkg/a.py src/pkg/b.py; mv src/pkg/b.py src/c.py; rm src/pkg/a.py
ln -s c.py src/d.py; cat .git/config; echo "$HOME" > $HOME/h; test -d "$TMPDIR"
"""
    done = await shell(world, layer, line)
    assert done.exit_code == 0, done.error_text
    assert done.text.startswith("42\n")
    copied = world.root / "src/c.py"
    assert copied.stat().st_mode & 0o777 == 0o755
    assert copied.stat().st_mtime == 0


async def test_asyncio_threads_and_processes_work_inside(world: World, layer: Layer) -> None:
    code = """
import asyncio, shutil, subprocess, sys, tempfile, threading, pathlib
async def main():
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(1)", stdout=-1)
    return (await child.communicate())[0]
assert asyncio.run(main()) == b"1\\n"
thread = threading.Thread(target=print); thread.start(); thread.join()
with tempfile.TemporaryDirectory() as there:
    one = pathlib.Path(there, "one"); one.write_text("x"); one.chmod(0o640)
    shutil.copy2(one, "src/two"); shutil.copytree(there, "src/tree")
    assert pathlib.Path("src/two").stat().st_mode & 0o777 == 0o640
"""
    done = await run(
        [sys.executable, "-c", code],
        cwd=world.root,
        timeout=30,
        env=ENVIRONMENT,
        sandbox=world.sandbox(layer),
    )
    assert done.exit_code == 0, done.error_text


@pytest.mark.case(70)
async def test_bubblewrap_has_a_loopback_of_its_own(world: World) -> None:
    if not WORKS[Layer.BUBBLEWRAP].works:
        pytest.skip(WORKS[Layer.BUBBLEWRAP].why)
    code = """
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://localhost:{server.server_port}/").status)
"""
    done = await run(
        [sys.executable, "-c", code],
        cwd=world.root,
        timeout=30,
        env=ENVIRONMENT,
        sandbox=world.sandbox(Layer.BUBBLEWRAP),
    )
    assert done.text == "200\n", done.error_text


async def test_the_network_can_be_allowed(world: World, layer: Layer) -> None:
    done = await world.attack("connect_tcp", layer, network=True)
    assert "ESCAPED" in done.text
    done = await world.attack("connect_unix_socket", layer, network=True)
    assert "ESCAPED" not in done.text


@pytest.mark.case(73)
async def test_a_flood_is_cut_inside_too(world: World, layer: Layer) -> None:
    done = await shell(world, layer, "yes")
    assert done.truncated


async def test_exit_codes_and_streams_come_through(world: World, layer: Layer) -> None:
    done = await shell(world, layer, "echo out; echo err >&2; exit 7")
    assert (done.exit_code, done.text, done.error_text) == (7, "out\n", "err\n")


async def test_input_comes_through(world: World, layer: Layer) -> None:
    sandbox = world.sandbox(layer)
    data = os.urandom(200_000)
    done = await run(["cat"], cwd=world.root, timeout=30, stdin=data, sandbox=sandbox)
    assert done.stdout == data


async def test_a_missing_program_is_said_before_anything_runs(world: World, layer: Layer) -> None:
    with pytest.raises(ProgramMissing, match="no-such-program"):
        await run(["no-such-program"], cwd=world.root, timeout=9, sandbox=world.sandbox(layer))


@pytest.mark.case(100, 135)
async def test_nothing_of_our_environment_is_in_the_cage(world: World, layer: Layer) -> None:
    done = await shell(world, layer, "env")
    assert "canary" not in done.text
    assert f"HOME={world.home}" not in done.text


async def test_no_descriptor_scratch_or_group_is_left(world: World, layer: Layer) -> None:
    def leftovers() -> tuple[int, list[str], list[Path]]:
        ours = f"evercontext-{os.getpid()}-"
        scratch = [name for name in os.listdir(tempfile.gettempdir()) if name.startswith(ours)]
        groups = sorted(Path("/sys/fs/cgroup").glob(f"*/{ours}*"))
        return len(os.listdir("/proc/self/fd")), scratch, groups

    await shell(world, layer, "true")
    before = leftovers()
    for _ in range(10):
        await shell(world, layer, "echo x > $TMPDIR/x; mkdir -m 0 $TMPDIR/closed")
    descriptors, scratch, groups = leftovers()
    assert descriptors <= before[0]
    assert scratch == []
    assert set(groups) <= set(before[2])


async def test_a_cage_that_cannot_be_closed_runs_nothing(world: World) -> None:
    sandbox = world.sandbox(Layer.LANDLOCK, limits=Limits(open_files=-5))
    with pytest.raises(NoSandbox, match="could not be closed"):
        await run(["touch", "src/ran"], cwd=world.root, timeout=20, sandbox=sandbox)
    assert not (world.root / "src/ran").exists()


OLD_KERNEL = """
import os, sys
from evercontext.process import confine, seccomp
from evercontext.process.seccomp import ABSENT, NEW_NAMESPACES, REFUSE, Rule, Test
seccomp.CALLS["landlock_create_ruleset"] = (444, 444)
rules = [
    Rule("landlock_create_ruleset", ABSENT),
    Rule("unshare", REFUSE),
    Rule("clone", REFUSE, (Test(0, NEW_NAMESPACES, 0, equal=False),)),
]
confine.check(confine.prctl(confine.PR_SET_NO_NEW_PRIVS, 1), "no_new_privs")
confine.filter_calls(seccomp.assemble(rules, os.uname().machine), listen=False)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Run something as on a kernel without Landlock and without namespaces for everybody."""


@pytest.mark.skipif(not seccomp.supported(), reason="no filter for this processor")
def test_without_any_layer_commands_are_refused_and_doctor_says_what_to_install(
    tmp_path: Path,
) -> None:
    """S9: the same words at each entrance, and nothing runs."""
    (tmp_path / "project").mkdir()
    marker = tmp_path / "project/ran"
    old = [sys.executable, "-c", OLD_KERNEL, EVERCONTEXT]

    def ask(*arguments: str) -> str:
        done = subprocess.run(
            [*old, *arguments], cwd=marker.parent, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    said = ask("fix", "--no-test", "--lint-cmd", f"touch {marker}")
    assert "no sandbox for commands works here" in said
    assert "the kernel has no Landlock" in said
    assert not marker.exists()
    lines = ask("doctor").splitlines()
    row = next(number for number, line in enumerate(lines) if line.startswith("warn  sandbox"))
    assert "commands are refused" in lines[row]
    assert "bubblewrap" in lines[row + 1]


def test_the_choice_names_what_is_missing() -> None:
    assert choose("none") is Layer.NONE
    with pytest.raises(NoSandbox, match="seatbelt"):
        choose("seatbelt")


def test_each_layer_says_why_and_how_to_mend_it() -> None:
    for finding in available():
        assert finding.why
        assert finding.works or finding.fix or "Linux" in finding.why
