"""Tokens: exact counts against a second implementation, and what ten replies teach the estimate.

    python benchmarks/tokens.py [TOKENIZER.json ...]              # measure
    python benchmarks/tokens.py prior FOLDER [TOKENIZER.json ...]  # make the prior anew

The closed tokenizer of a provider is played by public ones: some come with the product, others are
files named after them (claude.json). A stand-in, and every relative that shares its merges, is left
out of the prior it is measured with. Ten replies of mixed text teach the estimate; the errors are
those on text it was not taught with. FOLDER holds texts (*.txt) of many kinds: prose, manuals, code
in ten languages, data; none of them is measured with here, and nothing was chosen by what is.
"""

from __future__ import annotations

import importlib.metadata
import json
import random
import statistics
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

from evercontext.context.token_estimate import (
    SIZE,
    Calibration,
    Prior,
    TokenEstimator,
    count,
    features,
)
from evercontext.domain.message import user

HERE = Path(__file__).resolve().parent.parent
PRIOR = HERE / "src" / "evercontext" / "context" / "token_prior.json"
SAMPLES = 1000
STAND_INS = (
    "llama3",
    "mistral_v3",
    "deepseek_v3",
    "cl100k_base",
    "qwen3",
    "kimi_k2",
    "llama2",
    "mistral_v1",
    "gemma3",
)
# Tokenizers that share their merges are one family: knowing one is knowing the other.
FAMILIES = {
    "cl100k_base": "cl100k",
    "llama3": "cl100k",
    "qwen3": "cl100k",
    "glm4": "cl100k",
    "olmo2": "cl100k",
    "o200k_base": "o200k",
    "kimi_k2": "kimi",
    "mistral_v3": "tekken",
    "deepseek_v3": "deepseek",
    "llama2": "llama2",
    "mistral_v1": "mistral",
    "gemma3": "gemma",
    "modernbert": "modernbert",
}
# How much each weight may differ by itself: a few families do not show all that can be.
ALONE = 0.01
Count = Callable[[str], int]


def texts() -> dict[str, str]:
    english = "\n".join(
        str(d.metadata.get_payload() or "")  # type: ignore[attr-defined]
        for d in importlib.metadata.distributions()
    )
    source = "\n".join(p.read_text("utf-8") for p in sorted((HERE / "src").rglob("*.py")))
    japanese = japanese_text()
    data = [
        {"path": f"src/{n}.py", "size": n * 37, "ok": n % 3 == 0, "tags": ["a", str(n)]}
        for n in range(3000)
    ]
    mixed = [
        line
        for pair in zip(japanese.split("\n"), source.split("\n"), strict=False)
        for line in pair
    ]
    return {
        "English": english,
        "Japanese": japanese,
        "Python": source,
        "JSON": json.dumps(data),
        "mixed": "\n".join(mixed),
    }


def japanese_text() -> str:
    """Prose with markup and plain turns of speech by turns, so that both halves hold both."""
    prose = "\n".join(p.read_text("utf-8") for p in sorted(HERE.glob("*.ja.md"))).split("\n")
    told = (HERE / "benchmarks" / "data" / "memory_ja.tsv").read_text("utf-8").split("\n")
    turns = ["".join(c for c in line if ord(c) > 0x2FFF) for line in told]
    step = max(1, len(prose) // 20)
    blocks = [prose[n * step : (n + 1) * step] + turns[n::21] for n in range(21)]
    return "\n".join(line for block in blocks for line in block)


def cut(text: str, rng: random.Random, least: int = 400, most: int = 4000) -> str:
    size = rng.randint(least, most)
    start = rng.randrange(max(1, len(text) - size))
    return text[start : start + size]


def exact(kinds: dict[str, str], rng: random.Random) -> None:
    try:
        from rs_bpe.bpe import openai
    except ImportError:
        print("exact counts: install rs-bpe to compare with")
        return
    same = 0
    for n in range(SAMPLES):
        text = cut(list(kinds.values())[n % 5], rng)
        same += count(text, "o200k_base") == len(openai.o200k_base().encode(text))
    print(f"o200k counts equal to a second implementation: {same} of {SAMPLES}")


def family(name: str) -> str:
    """A tokenizer from a file stands alone unless it is listed."""
    return FAMILIES.get(name, name)


def fitted(folder: Path, counters: dict[str, Count]) -> dict[str, list[float]]:
    """The weights of each public tokenizer, by least relative squares over many cuts."""
    rng = random.Random(11)
    kinds = [path.read_text("utf-8") for path in sorted(folder.glob("*.txt"))]
    cuts = [cut(text, rng) for text in kinds for _ in range(150)]
    found = np.array([features(text) for text in cuts])
    scale = found.mean(axis=0) + 1e-9
    weights = {}
    for name, true in counters.items():
        rows = found / np.array([true(text) for text in cuts])[:, None] * scale
        gram = rows.T @ rows + 1e-8 * len(cuts) * np.eye(SIZE)
        weights[name] = [float(w) for w in np.linalg.solve(gram, rows.sum(axis=0)) * scale]
    return weights


def prior_of(weights: dict[str, list[float]], without: Collection[str] = ()) -> Prior:
    """Mean and spread of the weights; a family counts once, however many members it has."""
    names = [name for name in weights if family(name) not in without]
    members = [family(name) for name in names]
    share = np.array([1 / members.count(one) for one in members])
    families, share = share.sum(), share / share.sum()
    rows = np.array([weights[name] for name in names])
    mean = share @ rows
    off = (rows - mean) * np.sqrt(share)[:, None]
    spread = off.T @ off * families / (families - 1)
    spread += ALONE * np.diag(np.diag(spread)) + 1e-8 * np.eye(SIZE)
    precision = np.linalg.inv(spread)
    return Prior(tuple(mean.tolist()), tuple(tuple(row) for row in precision.tolist()))


def make_prior(folder: Path, paths: list[str]) -> None:
    weights = fitted(folder, {name: known(name) for name in FAMILIES} | given(paths))
    prior = prior_of(weights)
    kept: dict[str, Any] = {
        "mean": _short(prior.mean),
        "precision": [_short(row) for row in prior.precision],
        "weights": {name: _short(row) for name, row in weights.items()},
    }
    rows = [f'"{key}": {json.dumps(value)}' for key, value in kept.items()]
    PRIOR.write_text("{" + ",\n".join(rows) + "}\n", encoding="utf-8")


def _short(values: Collection[float]) -> list[float]:
    return [float(f"{value:.7g}") for value in values]


def learned(
    kinds: dict[str, str], rng: random.Random, name: str, true: Count, prior: Prior, replies: int
) -> float:
    errors: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(20):
        estimator = TokenEstimator("claude", Calibration(prior=prior))
        for n in range(replies):
            order = rng.sample(list(kinds.values()), 5)
            taught = "\n".join(cut(text[: len(text) // 2], rng) for text in order[: 1 + n % 3])
            estimator.learn([user(taught)], true(taught) + 7)
        for kind, text in kinds.items():
            for _ in range(20):
                held_out = cut(text[len(text) // 2 :], rng)
                real = true(held_out)
                errors[kind].append(abs(estimator.count(held_out) - real) / max(1, real))
    told = "  ".join(f"{k} {sorted(v)[int(0.95 * len(v))]:.1%}" for k, v in errors.items())
    whole = sorted(e for v in errors.values() for e in v)
    mean, p95 = statistics.mean(whole), whole[int(0.95 * len(whole))]
    print(f"{name:<16} {replies:>3} replies  mean {mean:.1%}  p95 {p95:.1%}  by kind: {told}")
    return p95


def known(name: str) -> Count:
    return lambda text: count(text, name)


def given(paths: list[str]) -> dict[str, Count]:
    return {Path(path).stem: foreign(path) for path in paths}


def foreign(path: str) -> Count:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def measure(paths: list[str]) -> None:
    rng, kinds = random.Random(7), texts()
    exact(kinds, rng)
    weights = json.loads(PRIOR.read_text("utf-8"))["weights"]
    for name, true in ({name: known(name) for name in STAND_INS} | given(paths)).items():
        prior = prior_of(weights, without={family(name)})
        for replies in (0, 1, 10):
            learned(kinds, rng, name, true, prior, replies)


def main() -> None:
    match sys.argv[1:]:
        case ["-h" | "--help"]:
            print(__doc__)
        case ["prior", folder, *paths]:
            make_prior(Path(folder), paths)
        case paths:
            measure(paths)


if __name__ == "__main__":
    main()
