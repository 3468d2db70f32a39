"""Index a large tree in a process of its own: time, peak memory, and how both grow.

    large_tree.py TREE LINES...

Copies source files of TREE until each number of lines is reached, indexes the copy, searches once.
"""

import asyncio
import itertools
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

KINDS = {".py", ".js", ".ts", ".rb", ".go", ".java", ".c", ".h", ".md", ".php", ".rs", ".zig"}


def build(source, target, lines):
    total = 0
    for number in itertools.count():
        for file in sorted(source.rglob("*")):
            if file.suffix not in KINDS or not file.is_file() or file.is_symlink():
                continue
            data = file.read_bytes()
            copy = target / f"copy{number}" / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            # Another last line makes each copy a content of its own.
            copy.write_bytes(data + f"\n# copy {number}\n".encode())
            total += data.count(b"\n")
            if total >= lines:
                return


async def index(tree):
    from code_search import cpu

    from evercontext.index.code_search import CodeIndex

    started, before = time.perf_counter(), cpu()
    opened = await CodeIndex.open(tree)
    report = await opened.update()
    wall, spent = time.perf_counter() - started, cpu() - before
    built = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    helper = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    await opened.search("connection pool", 5, fresh=False)
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = (tree / ".evercontext/index.db").stat().st_size / 1e6
    print(
        f"{report.added} files, {report.embedded} chunks: {wall:.1f} s wall, {spent:.1f} s CPU, "
        f"peak {built:.0f} MiB indexing, {helper:.0f} MiB its largest helper, "
        f"{loaded:.0f} MiB loaded, database {size:.0f} MB"
    )
    await opened.close()


def main():
    if sys.argv[1:] in ([], ["-h"], ["--help"]):
        print(__doc__)
        return
    if sys.argv[1] == "--index":
        asyncio.run(index(pathlib.Path(sys.argv[2])))
        return
    for lines in map(int, sys.argv[2:]):
        with tempfile.TemporaryDirectory() as folder:
            build(pathlib.Path(sys.argv[1]), pathlib.Path(folder), lines)
            print(f"{lines:,} lines: ", end="", flush=True)
            subprocess.run([sys.executable, __file__, "--index", folder], check=True)


if __name__ == "__main__":
    main()
