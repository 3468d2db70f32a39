"""Japanese questions over English repositories, next to the same questions in English.

    japanese_search.py TREES REPOS.json [QUESTIONS.jsonl]

Prints hit@1 and hit@10 of both, and of Japanese without the dictionary. Give it
``paraphrased_questions.jsonl`` for the same 41 answers in other words: English that shares hardly a
word with the code, and colloquial Japanese. They were written before any result was seen.
"""

import argparse
import asyncio
import json
import pathlib
import tempfile

from evercontext.index.code_search import CodeIndex
from evercontext.retrieval import japanese_dictionary

HERE = pathlib.Path(__file__).parent


async def hits(index, query, path):
    found = (await index.search(query, 10, fresh=False)).hits
    ranks = [i for i, hit in enumerate(found) if ("/" + hit.path).endswith("/" + path)]
    return ranks[0] if ranks else None


async def measure(trees, repos, questions):
    ranks = {"english": [], "japanese": [], "japanese, no dictionary": []}
    for repo in repos:
        mine = [q for q in questions if q["repo"] == repo["name"]]
        if not mine:
            continue
        with tempfile.TemporaryDirectory() as folder:
            index = await CodeIndex.open(
                trees / repo["name"] / repo["root"], folder=pathlib.Path(folder)
            )
            await index.update()
            for q in mine:
                ranks["english"].append(await hits(index, q["en"], q["path"]))
                ranks["japanese"].append(await hits(index, q["ja"], q["path"]))
                expand = japanese_dictionary.expand
                japanese_dictionary.expand = lambda text: {}
                ranks["japanese, no dictionary"].append(await hits(index, q["ja"], q["path"]))
                japanese_dictionary.expand = expand
                if ranks["japanese"][-1] != 0:
                    print(f"  {repo['name']}: {q['ja']} → {ranks['japanese'][-1]}")
            await index.close()
    return ranks


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("trees", type=pathlib.Path)
    parser.add_argument("repos", type=pathlib.Path)
    parser.add_argument(
        "questions", type=pathlib.Path, nargs="?", default=HERE / "japanese_questions.jsonl"
    )
    given = parser.parse_args()
    repos = json.loads(given.repos.read_text("utf-8"))
    questions = [json.loads(line) for line in given.questions.read_text("utf-8").splitlines()]
    for name, ranks in asyncio.run(measure(given.trees, repos, questions)).items():
        first = sum(r == 0 for r in ranks) / len(ranks)
        ten = sum(r is not None for r in ranks) / len(ranks)
        print(f"{name:24s} n={len(ranks)} hit@1 {first:.3f} hit@10 {ten:.3f}")


if __name__ == "__main__":
    main()
