"""Fit the ranking weights of the code index and print what they reach on trees never fitted on.

    ranker.py TREES REPOS.json QUERIES.jsonl [--whole] [--write src/evercontext/index/weights.json]

A linear listwise softmax with an L2 penalty over the signals of
`evercontext.index.ranking_features`, fitted per question on its candidates. Cross-validation leaves
whole repositories out, five folds of them and one language at a time. Trees are indexed both at the
root that the set names and, with ``--whole``, with tests, docs and examples: a prior is earned on
both. Needs scipy.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import pathlib

import numpy as np
from scipy.optimize import minimize

from evercontext.files.contained_paths import Root
from evercontext.files.policy import agent_policy
from evercontext.index.analyse_text import analyse
from evercontext.index.corpus import Corpus
from evercontext.index.languages import language_of
from evercontext.index.question import understand
from evercontext.index.ranking_features import NAMES, Scorer
from evercontext.index.source_reader import Reader, Unfit
from evercontext.index.walker import Walker
from evercontext.retrieval.static_vectors import load_static_vectors
from evercontext.retrieval.terms import STOP_WORDS, fold, runs

L2 = 40.0
FOLDS = 5
SEEDS = 3
BOUNDS = {
    "test": (-5.0, 0.0),
    "example": (-2.0, 0.0),
    "compat": (-1.0, 0.0),
    "generated": (-2.5, 0.0),
    "underscore": (-1.0, 0.0),
    "prose": (-5.0, 0.0),
    "data": (-4.0, 0.0),
}
"""What a path alone may count. Hardly a right answer of the set lies in such a path, so nothing
in it speaks against a weight that hides such files wherever they are the answer."""
DETAILS = {"detail_words": 4.0, "detail_names": 2.0, "detail_path": 3.0}
"""What the rest of a long question counts: these questions have none. Chosen on the issues marked
``dev`` in ``benchmarks/issue_questions.jsonl``, never on the others."""


def same_path(a, b):
    return a == b or a.endswith("/" + b) or b.endswith("/" + a)


def corpus_of(tree, vectors):
    walker = Walker(tree, agent_policy())
    with Root.open(tree) as root:
        reader = Reader(root, agent_policy())
        files = []
        for path in walker._scan():
            if walker.look(path) is None:
                continue
            try:
                text = reader.read(path).text
            except Unfit:
                continue
            files.append((path, analyse(text, language_of(path), vectors)))
    return Corpus.build(files, vectors)


def question_rows(corpus, question, vectors):
    text = question["query"]
    words = {r: 1.0 for r in runs(fold(text)) if r.lower() not in STOP_WORDS}
    found = Scorer(corpus, understand(text), vectors.pool(words)).run()
    paths = [corpus.path(slot) for slot in found.slots]
    relevant = np.array(
        [[same_path(p, t["path"]) for p in paths] for t in question["relevant"]], bool
    ).reshape(len(question["relevant"]), len(paths))
    return {
        "repo": question["repo"],
        "language": question["language"],
        "category": question["category"],
        "features": found.features.copy(),
        "relevant": relevant,
    }


def gather(trees, repos, questions, vectors, whole):
    by_repo = collections.defaultdict(list)
    for question in questions:
        by_repo[question["repo"]].append(question)
    rows = []
    for repo in repos:
        tree = trees / repo["name"] / (repo.get("whole", "") if whole else repo["root"])
        corpus = corpus_of(tree, vectors)
        rows += [question_rows(corpus, q, vectors) for q in by_repo[repo["name"]]]
        print(f"{repo['name']}: {corpus.live_files} files, {corpus.live_chunks} chunks", flush=True)
    return rows


def ndcg(row, weights):
    if not row["features"].size:
        return 0.0
    order = np.argsort(-(row["features"] @ weights), kind="stable")[:10]
    ranks = {hit[0] for t in row["relevant"] if len(hit := np.flatnonzero(t[order]))}
    ideal = sum(1 / math.log2(i + 2) for i in range(min(10, len(row["relevant"]))))
    return sum(1 / math.log2(r + 2) for r in ranks) / ideal


def macro(rows, scores):
    by_repo, by_language = collections.defaultdict(list), collections.defaultdict(list)
    for row, score in zip(rows, scores, strict=True):
        by_repo[row["language"], row["repo"]].append(score)
    for (language, _), values in by_repo.items():
        by_language[language].append(np.mean(values))
    return float(np.mean([np.mean(v) for v in by_language.values()]))


def fit(rows, l2=L2):
    used = [row for row in rows if row["relevant"].any()]
    size, width = max(len(r["features"]) for r in used), len(NAMES)
    spread = np.concatenate([r["features"] for r in used]).std(0)
    scale = np.where(spread < 1e-6, 1e9, spread)
    x = np.zeros((len(used), size, width), np.float32)
    y = np.zeros((len(used), size), np.float32)
    out = np.full((len(used), size), -1e9, np.float32)
    for i, row in enumerate(used):
        count, answers = len(row["features"]), row["relevant"].any(0)
        x[i, :count] = row["features"] / scale
        y[i, :count] = answers / answers.sum()
        out[i, :count] = 0
    shares = collections.Counter(row["language"] for row in used)
    importance = np.array([shares[row["language"]] ** -0.5 for row in used], np.float32)[:, None]
    importance /= importance.mean()
    flat = x.reshape(-1, width)

    def loss(w):
        s = (flat @ w.astype(np.float32)).reshape(len(used), size) + out
        s -= s.max(1, keepdims=True)
        p = np.exp(s)
        z = p.sum(1, keepdims=True)
        value = -(importance * y * (s - np.log(z))).sum()
        gradient = (importance * (p / z - y)).reshape(-1) @ flat
        return value + 0.05 * l2 * (w @ w), gradient + 0.1 * l2 * w

    bounds = [tuple(b * scale[i] for b in BOUNDS.get(n, (-1e3, 1e3))) for i, n in enumerate(NAMES)]
    found = minimize(
        loss, np.zeros(width), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 400}
    )
    return found.x / scale


def folds_by_repo(rows, seed):
    repos = sorted({row["repo"] for row in rows})
    np.random.RandomState(seed).shuffle(repos)
    return {repo: i % FOLDS for i, repo in enumerate(repos)}, "repo"


def folds_by_language(rows):
    return {row["language"]: row["language"] for row in rows}, "language"


def cross_validate(fitted, scored, folds, by):
    """Fit on the other folds (of all sets), score on this fold's."""
    weights = {
        fold: fit([r for r in fitted if folds[r[by]] != fold]) for fold in set(folds.values())
    }
    return [ndcg(row, weights[folds[row[by]]]) for row in scored]


def interval(rows, scores):
    """Return the 95 % confidence interval of the macro score, drawn by repository."""
    own = collections.defaultdict(list)
    for row, score in zip(rows, scores, strict=True):
        own[row["repo"]].append((row, score))
    draw, repos = np.random.RandomState(7), sorted(own)
    means = []
    for _ in range(1000):
        drawn = [pair for repo in draw.choice(repos, len(repos)) for pair in own[repo]]
        means.append(macro(*zip(*drawn, strict=True)))
    return np.percentile(means, [2.5, 97.5])


def report(name, fitted, scored):
    runs_ = [cross_validate(fitted, scored, *folds_by_repo(fitted, seed)) for seed in range(SEEDS)]
    by_language = cross_validate(fitted, scored, *folds_by_language(fitted))
    for kind, scores in (("five folds", np.mean(runs_, axis=0)), ("new language", by_language)):
        by_category = collections.defaultdict(list)
        for row, score in zip(scored, scores, strict=True):
            by_category[row["category"]].append(score)
        kinds = ", ".join(f"{k} {np.mean(v):.4f}" for k, v in sorted(by_category.items()))
        low, high = interval(scored, scores)
        value = macro(scored, scores)
        print(f"{name}, {kind}: macro NDCG@10 {value:.4f} [{low:.3f}, {high:.3f}]; {kinds}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trees", type=pathlib.Path)
    parser.add_argument("repos", type=pathlib.Path)
    parser.add_argument("queries", type=pathlib.Path)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--write", type=pathlib.Path)
    given = parser.parse_args()
    repos = json.loads(given.repos.read_text("utf-8"))
    questions = [json.loads(line) for line in given.queries.read_text("utf-8").splitlines()]
    vectors = load_static_vectors()
    narrow = gather(given.trees, repos, questions, vectors, whole=False)
    wide = gather(given.trees, repos, questions, vectors, whole=True) if given.whole else []
    report("roots", narrow + wide, narrow)
    if wide:
        report("whole trees", narrow + wide, wide)
    weights = fit(narrow + wide)
    if given.write:
        rounded = {n: round(float(w), 4) for n, w in zip(NAMES, weights, strict=True)} | DETAILS
        text = json.dumps({"fitted_by": "training/ranker.py", "weights": rounded}, indent=1)
        given.write.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
