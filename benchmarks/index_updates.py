"""What one changed file costs, at a small and a large tree; and a search in the large one.

    index_updates.py LARGE_TREE [SMALL_TREE]

The tree is copied first. Prints CPU ms of "a file was changed → the next search knows it" for the
index (paths given, as a watcher does), and for a whole scan, and query CPU p50/p95.
"""

import argparse
import asyncio
import pathlib
import random
import shutil
import statistics
import tempfile
import time

from code_search import cpu

from evercontext.index.code_search import CodeIndex

ROUNDS = 60
QUESTIONS = [
    "how are routes matched",
    "database connection pool",
    "render a template",
    "callback chain",
    "ApplicationController",
    "validate presence of attributes",
    "cache store expiry",
    "send mail",
    "parse multipart request body",
    "schema migration versions",
    "encrypt cookies",
    "job queue",
    "has_many association loading",
    "log subscriber",
    "time zone conversion",
    "test helper",
]


async def measure(tree):
    dice = random.Random(1)
    index = await CodeIndex.open(tree)
    started = cpu()
    report = await index.update()
    cold = 1000 * (cpu() - started)
    await index.search("warm up", fresh=False)
    rows = [p for p, r in (await index.table.rows()).items() if r.content and r.size < 40_000]
    code = [p for p in rows if p.endswith((".rb", ".py", ".go", ".php", ".js"))] or rows
    given, scanned, queries = [], [], []
    for i in range(ROUNDS):
        path = dice.choice(code)
        with (tree / path).open("a", encoding="utf-8") as file:
            file.write(f"\n# zebra{i} stripe\n")
        started = time.process_time()
        await index.update([path])
        found = await index.search(f"zebra{i}", 1, fresh=False)
        given.append(1000 * (time.process_time() - started))
        assert found.hits[0].path == path, (path, found.hits[0].path)
    for _ in range(5):
        started = time.process_time()
        await index.update()
        scanned.append(1000 * (time.process_time() - started))
    for _ in range(3):
        for question in QUESTIONS:
            started = time.process_time()
            await index.search(question, 10, fresh=False)
            queries.append(1000 * (time.process_time() - started))
    await index.close()
    cut = statistics.quantiles
    print(
        f"{len(rows)} files, {report.embedded} chunks: cold {cold:.0f} CPU ms; one changed file, "
        f"indexed and found: p50 {statistics.median(given):.1f} p95 {cut(given, n=20)[-1]:.1f}; "
        f"scan of the unchanged tree {statistics.median(scanned):.1f}; "
        f"query p50 {statistics.median(queries):.2f} p95 {cut(queries, n=20)[-1]:.2f}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("trees", nargs="+", type=pathlib.Path)
    for name in parser.parse_args().trees:
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder) / "tree"
            shutil.copytree(name, tree, symlinks=True)
            asyncio.run(measure(tree))


if __name__ == "__main__":
    main()
