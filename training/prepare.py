"""On the machine with the GPU: from extracted pairs to tensors.

    python -m training.prepare EXTRACTED EXTRAS OUT

EXTRAS holds the teacher, the fingerprints of the benchmark, its tool descriptions (to leave them
out) and a WordNet folder. OUT gets ``data.pt``, ``vocabulary.json`` and ``test.jsonl``.
"""

from __future__ import annotations

import json
import sys
import time
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import torch

from evercontext.retrieval.static_vectors import Pieces, root_counts, words_of
from training import dataset, vocabulary
from training.fingerprints import fingerprint
from training.teacher import Teacher

LATIN, SMALL, JAPANESE = 26_500, 3_000, 13_500
LENGTHS = {"question": 40, "document": 120}
_cutter: Pieces | None = None


def _start(words: list[str], scores: list[float]) -> None:
    global _cutter
    _cutter = Pieces(words, scores)


def _ids(job: tuple[list[str], int]) -> tuple[np.ndarray, np.ndarray]:
    texts, longest = job
    ids = np.zeros((len(texts), longest), np.int32)
    weights = np.zeros((len(texts), longest), np.float16)
    assert _cutter is not None
    cut = {}
    for row, text in enumerate(texts):
        found: dict[int, float] = {}
        for run, weight in root_counts(text).items():
            if run not in cut:
                cut[run] = [i for word in words_of(run) for i in _cutter.cut(word)]
            for i in cut[run]:
                found[i] = found.get(i, 0.0) + weight
        for at, (i, weight) in enumerate(list(found.items())[:longest]):
            ids[row, at], weights[row, at] = i + 1, weight
    return ids, weights


def tokenise(
    texts: list[str], longest: int, words: list[str], scores: list[float]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return padded piece numbers (0 is nothing) and their weights."""
    jobs = [(texts[i : i + 4000], longest) for i in range(0, len(texts), 4000)]
    with Pool(16, _start, (words, scores)) as pool:
        parts = pool.map(_ids, jobs, chunksize=1)
    return (
        torch.from_numpy(np.concatenate([p[0] for p in parts])),
        torch.from_numpy(np.concatenate([p[1] for p in parts])),
    )


def load(extracted: Path, extras: Path) -> dataset.DataSet:
    """Return all pairs, WordNet among them."""
    banned = set((extras / "fingerprints.txt").read_text().split())
    tools = json.loads((extras / "tools.json").read_text())
    texts = {
        fingerprint(part)
        for t in tools
        for part in (t["description"] or "").split(". ")
        if len(part) > 20
    }
    texts |= {fingerprint(t["description"] or "-") for t in tools}
    data = dataset.gather(extracted, banned, texts)
    data.text += list(dataset.wordnet_pairs(extras / "wordnet"))
    return data


def main() -> None:
    extracted, extras, out = map(Path, sys.argv[1:4])
    out.mkdir(parents=True, exist_ok=True)
    begin = time.time()
    data = load(extracted, extras)
    train = data.code["train"]
    print(
        {k: len(v) for k, v in data.code.items()},
        len(data.text),
        len(data.japanese),
        time.time() - begin,
    )
    english = [t for pair in train for t in pair[:2]] + [t for pair in data.text for t in pair[:2]]
    english += [pair[1] for pair in data.japanese]
    counts = vocabulary.count_all(english)
    japanese = vocabulary.count_all([pair[0] for pair in data.japanese])
    counts.update(japanese)
    words = vocabulary.choose(counts, japanese, LATIN, SMALL, JAPANESE)
    scores = vocabulary.score(words, counts)
    print(len(words), "pieces", time.time() - begin, flush=True)
    frequency = [counts.get(word, 1) for word in words]
    (out / "vocabulary.json").write_text(
        json.dumps({"words": words, "scores": scores, "frequency": frequency})
    )
    teacher = Teacher(extras / "teacher")
    tensors: dict[str, object] = {"tokens": teacher.encode(words).half()}
    for name, pairs in {
        **{f"code-{k}": v for k, v in data.code.items()},
        "text": data.text,
        "japanese": data.japanese,
    }.items():
        for side, place in (("question", 0), ("document", 1)):
            texts = [pair[place] for pair in pairs]
            tensors[f"{name}-{side}"] = tokenise(
                texts,
                LENGTHS["question" if name == "japanese" or side == "question" else "document"],
                words,
                scores,
            )
            if not (name == "japanese" and side == "question"):
                tensors[f"{name}-{side}-teacher"] = teacher.encode(texts).half()
        groups = {g: i for i, g in enumerate(dict.fromkeys(pair[2] for pair in pairs))}
        tensors[f"{name}-group"] = torch.tensor([groups[pair[2]] for pair in pairs])
        print(name, len(pairs), time.time() - begin, flush=True)
    tensors["test-places"] = torch.tensor(dataset.sample_test(data, 1500))
    tensors["dev-places"] = torch.tensor(dataset.sample_test(data, 1500, "dev"))
    torch.save(tensors, out / "data.pt")
    with (out / "test.jsonl").open("w", encoding="utf-8") as opened:
        for part in ("test", "dev"):
            for place in dataset.sample_test(data, 1500, part):
                doc, code, package = data.code[part][place]
                opened.write(
                    json.dumps(
                        {
                            "split": part,
                            "package": package,
                            "language": data.languages[part][place],
                            "doc": doc,
                            "code": code,
                        },
                        ensure_ascii=False,
                    )
                    + "\n"
                )
    (out / "counts.json").write_text(
        json.dumps(
            {
                "code": {k: len(v) for k, v in data.code.items()},
                "text": len(data.text),
                "japanese": len(data.japanese),
            }
        )
    )


if __name__ == "__main__":
    main()
