"""Is the piece that is shown the definition? Questions that are one name, scored by the chunk.

    symbol_search.py TREES REPOS.json QUERIES.jsonl [--whole] [--peers PYTHON]

Takes the questions of the public set that are the name of a symbol. Right is a first result whose
lines hold a line that defines the name as it is spelt (``class Name``, ``func Name``, ``Name =``…,
found by a plain pattern, not by our own parser) in a file that the set calls relevant. Questions
for which no such line is found are left out and counted.
"""

import argparse
import asyncio
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
NAME = re.compile(r"[A-Za-z_$][\w$]*(?:(?:::|\.|#|->|\\)[A-Za-z_$][\w$]*)*[!?]?")
WORDS = """
    class struct interface trait enum object protocol type typealias record module defmodule
    namespace data newtype union actor extension def defp defmacro fn func fun function sub
    const let var val typedef concept impl
"""


def defining_lines(text, name):
    """Return the lines, from 1, that define a name: by a word before it, else a value or a call."""
    short = re.split(r"::|\.|#|->|\\", name)[-1]
    own = re.escape(short)
    by_word = re.compile(
        rf"^[^\"'#/*]*\b(?:{'|'.join(WORDS.split())})\s+(?:\([^)]*\)\s*)?(?:[\w$.]+[.:]{{1,2}})?{own}(?![\w$])"
    )
    typed = re.compile(rf"^\s*(?:[\w<>\[\],*&:]+\s+)+\**{own}\s*(?:\(|<|=|$)|^{own}\s*(?:::|=|\()")
    for pattern in (by_word, typed):
        lines = [n for n, line in enumerate(text.split("\n"), 1) if pattern.search(line)]
        if lines:
            return lines
    return []


def questions(trees, repos, queries, whole):
    roots = {r["name"]: trees / r["name"] / ("" if whole else r["root"]) for r in repos}
    skipped = 0
    for q in map(json.loads, queries.read_text("utf-8").splitlines()):
        if q["category"] != "symbol" or not NAME.fullmatch(q["query"]) or q["repo"] not in roots:
            continue
        right = {}
        for target in q["relevant"]:
            file = trees / q["repo"] / target["path"]
            if file.is_file() and (
                lines := defining_lines(file.read_text("utf-8", "replace"), q["query"])
            ):
                right[target["path"]] = lines
        skipped += not right
        if right:
            yield q["repo"], roots[q["repo"]], q["query"], right
    print(f"{skipped} questions without a defining line are left out", file=sys.stderr)


def holds(path, first, last, right):
    return any(
        (goal == path or goal.endswith("/" + path)) and any(first <= n <= last for n in lines)
        for goal, lines in right.items()
    )


async def ours(asked):
    from evercontext.index.code_search import CodeIndex

    shown, named, missed = 0, 0, []
    for root in dict.fromkeys(root for _, root, _, _ in asked):
        with tempfile.TemporaryDirectory() as folder:
            index = await CodeIndex.open(root, folder=pathlib.Path(folder))
            await index.update()
            for repo, own, query, right in asked:
                if own != root:
                    continue
                hit = (await index.search(query, 1, fresh=False)).hits[:1]
                good = bool(hit) and holds(hit[0].path, hit[0].start_line, hit[0].end_line, right)
                shown += good
                short = re.split(r"::|\.|#|->|\\", query)[-1]
                named += good and short in re.split(r"\W+", hit[0].symbol or "")
                if not good:
                    missed.append((repo, query, hit[0].key if hit else None, hit and hit[0].symbol))
            await index.close()
    for miss in missed:
        print("  missed", *miss, file=sys.stderr)
    return f"{shown} of {len(asked)} ({shown / len(asked):.3f}), named after it {named}"


def semble(asked):
    import code_search_peers

    shown, ask, last = 0, None, None
    for _, root, query, right in sorted(asked, key=lambda row: str(row[1])):
        if root != last:
            (ask, _), last = code_search_peers.semble_engine(root), root
        shown += any(holds(*hit, right) for hit in ask(query)[:1])
    return f"{shown} of {len(asked)} ({shown / len(asked):.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("trees", "repos", "queries"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--peers", help="a Python that has semble")
    parser.add_argument("--engine", default="ours", choices=("ours", "semble"))
    given = parser.parse_args()
    repos = json.loads(given.repos.read_text("utf-8"))
    asked = list(questions(given.trees, repos, given.queries, given.whole))
    if given.engine == "ours":
        print(f"ours   {asyncio.run(ours(asked))}")
    else:
        print(f"semble {semble(asked)}")
    if given.peers:
        same = [given.trees, given.repos, given.queries, *(["--whole"] if given.whole else [])]
        subprocess.run([given.peers, __file__, *same, "--engine", "semble"], check=True)


if __name__ == "__main__":
    main()
