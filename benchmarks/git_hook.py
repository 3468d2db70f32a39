"""What the commit hook adds to a commit, next to an empty hook, in one run.

    git_hook.py [ROUNDS]

Prints wall ms p50 of commits with an empty hook, with ours and the indexer missing, and with ours
starting the real indexer.
"""

import asyncio
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from evercontext.index import git_hook
from evercontext.index.folder import prepare_folder


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


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with tempfile.TemporaryDirectory() as folder:
        trees = {name: repository(folder, name) for name in ("empty", "missing", "real")}
        for event in git_hook.EVENTS:
            hook = trees["empty"] / ".git/hooks" / event
            hook.write_text("#!/bin/sh\n")
            hook.chmod(0o755)
        asyncio.run(git_hook.install(trees["missing"], program="/nonexistent/evercontext"))
        real = shutil.which("evercontext") or str(
            pathlib.Path(sys.executable).with_name("evercontext")
        )
        asyncio.run(git_hook.install(trees["real"], program=real))
        took = {name: [] for name in trees}
        for _ in range(rounds):
            for name in ("empty", "missing"):
                took[name] += commits(trees[name], 1)
        took["real"] = commits(trees["real"], min(rounds, 5))
        for name, values in took.items():
            print(f"{name:8s} p50 {statistics.median(values):.1f} ms  max {max(values):.1f} ms")
        time.sleep(5)


if __name__ == "__main__":
    main()
