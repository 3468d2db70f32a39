"""Tokens: exact counts against a second implementation, and what ten replies teach the estimate.

    python benchmarks/tokens.py

The closed tokenizer of a provider is played by public ones that the estimate never sees. Ten
replies of mixed text teach it; the errors are those on text it was not taught with.
"""

from __future__ import annotations

import importlib.metadata
import json
import random
import statistics
from pathlib import Path

from evercontext.context.tokens import TokenEstimator, count
from evercontext.domain.message import user

HERE = Path(__file__).resolve().parent.parent
SAMPLES = 1000
STAND_INS = ("llama3", "mistral_v3", "deepseek_v3", "cl100k_base")


def texts() -> dict[str, str]:
    english = "\n".join(
        str(d.metadata.get_payload() or "")  # type: ignore[attr-defined]
        for d in importlib.metadata.distributions()
    )
    source = "\n".join(p.read_text("utf-8") for p in sorted((HERE / "src").rglob("*.py")))
    japanese = "\n".join(p.read_text("utf-8") for p in sorted(HERE.glob("*.ja.md")))
    for path in sorted((HERE / "benchmarks" / "data").rglob("*.json*")):
        japanese += "".join(c for c in path.read_text("utf-8") if ord(c) > 0x2FFF or c in "。、\n")
    data = [{"path": f"src/{n}.py", "size": n * 37, "ok": n % 3 == 0, "tags": ["a", str(n)]}
            for n in range(3000)]  # fmt: skip
    mixed = [line for pair in zip(japanese.split("\n"), source.split("\n"), strict=False)
             for line in pair]  # fmt: skip
    return {"English": english, "Japanese": japanese, "Python": source,
            "JSON": json.dumps(data), "mixed": "\n".join(mixed)}  # fmt: skip


def cut(text: str, rng: random.Random) -> str:
    size = rng.randint(400, 4000)
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


def learned(kinds: dict[str, str], rng: random.Random, stand_in: str) -> None:
    errors: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(20):
        estimator = TokenEstimator("claude")
        for n in range(10):
            order = rng.sample(list(kinds.values()), 5)
            taught = "\n".join(cut(text[: len(text) // 2], rng) for text in order[: 1 + n % 3])
            estimator.learn([user(taught)], count(taught, stand_in) + 7)
        for kind, text in kinds.items():
            for _ in range(20):
                held_out = cut(text[len(text) // 2 :], rng)
                true = count(held_out, stand_in)
                errors[kind].append(abs(estimator.count(held_out) - true) / max(1, true))
    told = "  ".join(f"{k} {sorted(v)[int(0.95 * len(v))]:.1%}" for k, v in errors.items())
    whole = sorted(e for v in errors.values() for e in v)
    mean, p95 = statistics.mean(whole), whole[int(0.95 * len(whole))]
    print(f"{stand_in:<12} mean {mean:.1%}  p95 {p95:.1%}  p95 by kind: {told}")


def main() -> None:
    rng = random.Random(7)
    kinds = texts()
    exact(kinds, rng)
    for stand_in in STAND_INS:
        learned(kinds, rng, stand_in)


if __name__ == "__main__":
    main()
