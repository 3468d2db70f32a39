"""What the commit hook adds to a commit, next to an empty hook, in one run.

    git_hook.py [ROUNDS]

Prints wall ms p50 and p95 of commits with an empty hook, with ours and the indexer missing, with
ours starting the real indexer, and with ours and every fault of the spool at once. The indexer runs
beside the commits: on a busy machine it costs them its share of the processor.
"""

import argparse
import asyncio
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from evercontext.index import git_hook
from evercontext.index.location import prepare_folder


def commits(tree, rounds):
    took = []
    for i in range(rounds):
        (tree / "a.py").write_text(f"x = {time.time_ns()}\n")
        subprocess.run(["git", "add", "-A"], cwd=tree, check=True)
        started = time.perf_counter()
        subprocess.run(["git", "commit", "-qm", str(i)], cwd=tree, check=True)
        took.append(1000 * (time.perf_counter() - started))
    return took


def repository(folder, name):
    tree = pathlib.Path(folder) / name
    tree.mkdir()
    for arguments in (
        ["init", "-q"],
        ["config", "user.name", "b"],
        ["config", "user.email", "b@b"],
    ):
        subprocess.run(["git", *arguments], cwd=tree, check=True)
    prepare_folder(tree)
    return tree


def clear(spool):
    if spool.is_dir() and not spool.is_symlink():
        spool.rmdir()
    else:
        spool.unlink(missing_ok=True)


FAULTS = (
    lambda spool: spool.symlink_to("/dev/full"),
    lambda spool: spool.mkdir(),
    lambda spool: os.mkfifo(spool),
    lambda spool: spool.symlink_to("nowhere"),
    lambda spool: None,
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("rounds", type=int, nargs="?", default=30)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        trees = {name: repository(folder, name) for name in ("empty", "missing", "real", "faulty")}
        for event in git_hook.EVENTS:
            hook = trees["empty"] / ".git/hooks" / event
            hook.write_text("#!/bin/sh\n")
            hook.chmod(0o755)
        asyncio.run(git_hook.install(trees["missing"], program="/nonexistent/evercontext"))
        real = shutil.which("evercontext") or str(
            pathlib.Path(sys.executable).with_name("evercontext")
        )
        asyncio.run(git_hook.install(trees["real"], program=real))
        hanging = pathlib.Path(folder) / "hanging"
        hanging.write_text("#!/bin/sh\nsleep 2\nexit 7\n")
        hanging.chmod(0o755)
        asyncio.run(git_hook.install(trees["faulty"], program=str(hanging)))
        took = {name: [] for name in trees}
        for number in range(rounds):
            spool = trees["faulty"] / ".evercontext/spool"
            FAULTS[number % len(FAULTS)](spool)
            for name in trees:
                took[name] += commits(trees[name], 1)
            clear(spool)
        for name, values in took.items():
            ordered = sorted(values)
            p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
            added = statistics.median(values) - statistics.median(took["empty"])
            print(
                f"{name:8s} p50 {statistics.median(values):6.1f} ms  p95 {p95:6.1f} ms"
                f"  added at p50 {added:+5.1f} ms"
            )
        time.sleep(5)


if __name__ == "__main__":
    main()
