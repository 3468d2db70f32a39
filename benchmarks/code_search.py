"""Code search on public questions: quality, cold index, query and update cost, next to peers.

    code_search.py TREES REPOS.json QUERIES.jsonl [--whole] [--peers PYTHON] [--out FOLDER]

TREES holds one checkout per repository of REPOS.json. The product is driven through its own
``CodeIndex``; ``--peers`` names a Python that has semble and tantivy, which are then measured in
the same run. Results are written as one JSON line per question, for an outside scorer. The weights
that ship were fitted on these questions: the cross-validated figure is ``training/ranker.py``'s.
"""

import argparse
import asyncio
import collections
import json
import math
import pathlib
import resource
import subprocess
import tempfile
import time

from evercontext.index.code_search import CodeIndex

HERE = pathlib.Path(__file__).parent


def cpu():
    """Return the CPU seconds of this process and of those that it started and that have ended."""
    used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def same_path(a, b):
    return a == b or a.endswith("/" + b) or b.endswith("/" + a)


def overlaps(result, target):
    if not same_path(result["path"], target["path"]):
        return False
    if target.get("start_line") is None:
        return True
    return not (
        result["end_line"] < target["start_line"] or result["start_line"] > target["end_line"]
    )


def ndcg(question, results):
    ranks = {
        next((i for i, r in enumerate(results[:10]) if overlaps(r, t)), None)
        for t in question["relevant"]
    }
    ideal = sum(1 / math.log2(i + 2) for i in range(min(10, len(question["relevant"]))))
    return sum(1 / math.log2(r + 2) for r in ranks if r is not None) / ideal


def summary(questions, results):
    by_repo, by_category = collections.defaultdict(list), collections.defaultdict(list)
    for q in questions:
        score = ndcg(q, results.get((q["repo"], q["query"]), []))
        by_repo[q["language"], q["repo"]].append(score)
        by_category[q["category"]].append(score)
    by_language = collections.defaultdict(list)
    for (language, _), scores in by_repo.items():
        by_language[language].append(sum(scores) / len(scores))
    macro = sum(sum(v) / len(v) for v in by_language.values()) / len(by_language)
    kinds = " ".join(f"{k} {sum(v) / len(v):.4f}" for k, v in sorted(by_category.items()))
    return f"NDCG@10 macro {macro:.4f}  ({kinds})"


async def ours(trees, repos, questions, whole, out):
    index_ms, load_ms, query_ms, chunks = [], [], [], 0
    with out.open("w", encoding="utf-8") as lines:
        for repo in repos:
            root = trees / repo["name"] / (repo.get("whole", "") if whole else repo["root"])
            with tempfile.TemporaryDirectory() as folder:
                index = await CodeIndex.open(root, folder=pathlib.Path(folder))
                started = cpu()
                report = await index.update()
                index_ms.append(1000 * (cpu() - started))
                chunks += report.embedded
                started = time.process_time()
                await index.search("warm up", fresh=False)
                load_ms.append(1000 * (time.process_time() - started))
                for q in (q for q in questions if q["repo"] == repo["name"]):
                    started = time.process_time()
                    found = (await index.search(q["query"], 10, fresh=False)).hits
                    query_ms.append(1000 * (time.process_time() - started))
                    shown = [
                        {"path": h.path, "start_line": h.start_line, "end_line": h.end_line}
                        for h in found
                    ]
                    line = {"repo": repo["name"], "query": q["query"], "results": shown}
                    lines.write(json.dumps(line) + "\n")
                await index.close()
    print(
        f"ours     {'whole' if whole else 'root':5s} index CPU ms mean "
        f"{sum(index_ms) / len(index_ms):.0f} total {sum(index_ms):.0f} "
        f"(+ {sum(load_ms):.0f} until the first answer), chunks {chunks}, "
        f"query CPU ms p50 {percentile(query_ms, 0.5):.2f} p95 {percentile(query_ms, 0.95):.2f}",
        flush=True,
    )


def read_results(file):
    rows = (json.loads(line) for line in file.read_text("utf-8").splitlines())
    return {(r["repo"], r["query"]): r["results"] for r in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("trees", "repos", "queries"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--peers", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    repos = json.loads(given.repos.read_text("utf-8"))
    questions = [json.loads(line) for line in given.queries.read_text("utf-8").splitlines()]
    mode = "whole" if given.whole else "root"
    engines = ["ours"]
    asyncio.run(
        ours(given.trees, repos, questions, given.whole, given.out / f"code-ours-{mode}.jsonl")
    )
    for peer in ("semble", "tantivy") if given.peers else ():
        engines.append(peer)
        target = given.out / f"code-{peer}-{mode}.jsonl"
        subprocess.run(
            [
                given.peers,
                HERE / "code_search_peers.py",
                peer,
                mode,
                given.trees,
                given.repos,
                given.queries,
                target,
            ],
            check=True,
            stderr=subprocess.DEVNULL,
        )
    for engine in engines:
        found = read_results(given.out / f"code-{engine}-{mode}.jsonl")
        print(f"{engine:8s} {mode:5s} {summary(questions, found)}")


if __name__ == "__main__":
    main()
