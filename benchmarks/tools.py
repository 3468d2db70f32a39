"""Finding the right tool, next to FastMCP's BM25 transform in the same run.

    tools.py FOLDER [--fastmcp PYTHON] [--strategy hybrid|bm25] [--halves]

FOLDER holds tools.json and dev_queries.jsonl ({qid, set, query, relevant}). PYTHON is an
interpreter that has fastmcp installed; its transform answers the same questions there, over the
same tools. Times are processor milliseconds of one question. ``--halves`` also prints both halves
of the questions, by task: what was chosen by looking at one must hold on the other.
"""

import argparse
import collections
import hashlib
import json
import math
import pathlib
import re
import subprocess
import time

from evercontext.catalog.tool_entry import read_entry
from evercontext.catalog.tool_search import Strategy, ToolSearch

THEIRS = """
import asyncio, json, sys, time
from fastmcp.server.transforms.search.bm25 import BM25SearchTransform
from fastmcp.tools.base import Tool
given = json.load(sys.stdin)
def schema(tool):
    named = {p["name"]: {"description": p.get("description") or ""} for p in tool["params"] or []}
    return {"type": "object", "properties": named}
tools = [Tool(name=t["toolKey"], description=t["description"] or "", parameters=schema(t))
         for t in given["tools"]]
transform = BM25SearchTransform(max_results=20)
async def main():
    await transform._search(tools, "warm")
    for query in given["queries"]:
        started = time.process_time()
        found = await transform._search(tools, query)
        spent = 1000 * (time.process_time() - started)
        print(json.dumps([[t.name for t in found], spent]))
asyncio.run(main())
"""


def ours(tools, queries, strategy):
    search = ToolSearch([read_entry(tool) for tool in tools], strategy)
    search.search(["warm"], 20)
    for query in queries:
        started = time.process_time()
        found = search.search([query], 20)
        yield [one.entry.key for one in found], 1000 * (time.process_time() - started)


def theirs(tools, queries, python):
    given = json.dumps({"tools": tools, "queries": queries})
    done = subprocess.run(
        [python, "-c", THEIRS], input=given, capture_output=True, text=True, check=True
    )
    for line in done.stdout.splitlines():
        yield tuple(json.loads(line))


def measure(ranked, relevant):
    """NDCG@10, recall@5 and hit@1 of one answer."""
    ranks = [ranked.index(key) + 1 for key in relevant if key in ranked]
    ideal = sum(1 / math.log2(i + 2) for i in range(min(10, len(relevant))))
    gain = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= 10)
    return gain / ideal, sum(rank <= 5 for rank in ranks) / len(relevant), float(1 in ranks)


def report(name, questions, answers):
    groups, times = collections.defaultdict(list), []
    for question, (ranked, spent) in zip(questions, answers, strict=True):
        groups[question["set"]].append(measure(ranked, question["relevant"]))
        times.append(spent)
    times.sort()
    p95 = times[int(0.95 * (len(times) - 1))]
    for label, rows in sorted(groups.items()):
        ndcg, recall, hit = (sum(column) / len(rows) for column in zip(*rows, strict=True))
        print(
            f"{name:14s} {label:10s} n={len(rows):3d}  hit@1 {hit:.3f}  recall@5 {recall:.3f}"
            f"  NDCG@10 {ndcg:.3f}  p95 {p95:.2f} ms"
        )


def half(qid):
    """Questions of one task are in the same half."""
    task = re.search(r"\d+", qid)[0]
    return "AB"[int(hashlib.sha256(task.encode()).hexdigest(), 16) % 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--fastmcp", metavar="PYTHON")
    parser.add_argument("--strategy", default="hybrid", choices=["hybrid", "bm25"])
    parser.add_argument("--halves", action="store_true")
    options = parser.parse_args()
    tools = json.loads((options.folder / "tools.json").read_bytes())
    lines = (options.folder / "dev_queries.jsonl").read_text("utf-8").splitlines()
    questions = [json.loads(line) for line in lines if line.strip()]
    queries = [question["query"] for question in questions]
    print(f"{len(tools)} tools, {len(queries)} questions")
    strategy = Strategy(options.strategy)
    answers = list(ours(tools, queries, strategy))
    report(f"ours {strategy}", questions, answers)
    for name in ("A", "B") if options.halves else ():
        pairs = [(q, a) for q, a in zip(questions, answers, strict=True) if half(q["qid"]) == name]
        report(f"  half {name}", *zip(*pairs, strict=True))
    if options.fastmcp:
        report("fastmcp BM25", questions, theirs(tools, queries, options.fastmcp))


if __name__ == "__main__":
    main()
