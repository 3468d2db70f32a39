"""The text of real issues as a question: are the files that the fix changed found?

    issue_search.py MIRRORS TEXTS.jsonl [--half aside] [--engine ours,semble,tantivy]
        [--peers PYTHON] [--out FOLDER] [--most-files 2000]

``issue_questions.jsonl`` names repository, commit before the fix, and the files that it changed;
the texts are other people's and not kept here: TEXTS has one ``{"id": …, "text": …}`` per line,
as the public tasks of SWE-bench and SWE-bench Multilingual give them, and MIRRORS holds a git
directory ``owner+name/repo`` per repository. Whole trees are indexed, as they were before the fix.
Each engine is asked by the title and by the whole text; printed is the mean reciprocal rank of the
first right file among ten, with its 95 % confidence interval. Questions marked ``dev`` were looked
at while the ranking was made; only ``aside`` may be reported.
"""

import argparse
import asyncio
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
QUESTIONS = HERE / "issue_questions.jsonl"


def checkout(mirrors, question, folder):
    names = {path.name.lower(): path for path in mirrors.iterdir()}
    git = names[question["repository"].replace("/", "+").lower()] / "repo"
    archive = subprocess.run(
        ["git", f"--git-dir={git}", "archive", question["commit"]], check=True, capture_output=True
    )
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)


def rank_of(paths, gold):
    different = list(dict.fromkeys(paths))[:10]
    return next((i + 1 for i, path in enumerate(different) if path in gold), None)


def ask_ours(root, queries):
    from evercontext.index.code_search import CodeIndex

    async def ask():
        with tempfile.TemporaryDirectory() as folder:
            index = await CodeIndex.open(root, folder=pathlib.Path(folder))
            await index.update()
            found = [(await index.search(q, 11, fresh=False)).hits for q in queries]
            await index.close()
        return [[hit.path for hit in hits] for hits in found]

    return asyncio.run(ask())


def ask_peer(engine, root, queries):
    import code_search_peers

    make = {"semble": code_search_peers.semble_engine, "tantivy": code_search_peers.tantivy_engine}
    ask, _ = make[engine](root)
    return [[path for path, *_ in ask(query)] for query in queries]


def run(engine, given, out):
    """Write one line per question that has no line yet."""
    done = {json.loads(line)["id"] for line in out.read_text().splitlines()} if out.exists() else ()
    texts = {row["id"]: row["text"] for row in map(json.loads, given.texts.open(encoding="utf-8"))}
    questions = [json.loads(line) for line in QUESTIONS.read_text("utf-8").splitlines()]
    with out.open("a", encoding="utf-8") as lines:
        for q in questions:
            wanted = q["half"] in given.half and q["files"] <= given.most_files
            if q["id"] in done or q["id"] not in texts or not wanted:
                continue
            with tempfile.TemporaryDirectory() as folder:
                try:
                    checkout(given.mirrors, q, folder)
                except (subprocess.CalledProcessError, KeyError) as problem:
                    print(f"left out: {q['id']}: {problem}", file=sys.stderr)
                    continue
                text = texts[q["id"]]
                queries = [text.strip().split("\n")[0], text]
                root = pathlib.Path(folder)
                ask = ask_ours if engine == "ours" else lambda *a: ask_peer(engine, *a)
                title, whole = (rank_of(paths, q["gold"]) for paths in ask(root, queries))
            row = {"id": q["id"], "language": q["language"], "title": title, "whole": whole}
            lines.write(json.dumps(row) + "\n")
            lines.flush()


def interval(values):
    draw = random.Random(7)
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(2000))
    return means[50], means[-51]


def report(rows, shared):
    for engine, found in rows.items():
        for kind in ("title", "whole"):
            by_language = collections.defaultdict(list)
            for row in found:
                if row["id"] in shared:
                    by_language[row["language"]].append(1 / row[kind] if row[kind] else 0.0)
            values = [v for group in by_language.values() for v in group]
            low, high = interval(values)
            each = " ".join(f"{k} {sum(v) / len(v):.3f}" for k, v in sorted(by_language.items()))
            mean = sum(values) / len(values)
            said = f"n={len(values)} MRR@10 {mean:.4f} [{low:.3f}, {high:.3f}]"
            print(f"{engine:8s} {kind:6s} {said}  {each}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mirrors", type=pathlib.Path)
    parser.add_argument("texts", type=pathlib.Path)
    parser.add_argument("--half", default="aside", help="dev, aside or dev,aside")
    parser.add_argument("--engine", default="ours")
    parser.add_argument("--peers", help="a Python that has semble and tantivy")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    parser.add_argument("--most-files", type=int, default=2000)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    engines = given.engine.split(",")
    rows = {}
    for engine in engines:
        out = given.out / f"issues-{engine}.jsonl"
        if engine == "ours" or given.peers is None:
            run(engine, given, out)
        else:
            own = [given.mirrors, given.texts, "--half", given.half, "--engine", engine]
            own += ["--out", given.out, "--most-files", str(given.most_files)]
            subprocess.run([given.peers, __file__, *own], check=True, stdout=sys.stderr)
        rows[engine] = [json.loads(line) for line in out.read_text().splitlines()]
    report(rows, set.intersection(*({row["id"] for row in found} for found in rows.values())))


if __name__ == "__main__":
    main()
