"""Learn the Japanese-English dictionary of software words from translated messages.

    terms.py PAIRS.jsonl... --write src/evercontext/retrieval/terms_ja.json

Each line of the input is {"package", "licence", "en", "ja"}, as ``catalogues.py`` and
``translations.py`` extract them; only permissive licences are read. A Japanese message is cut into
units (runs of katakana, runs of kanji and their parts, a kanji with its first kana), an English
one into stems, and IBM Model 1 learns which stem a unit stands for, in both directions: what both
agree on is kept. The result holds single words and weights, no message.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import re

import numpy as np

from evercontext.retrieval.japanese_dictionary import units
from evercontext.retrieval.terms import STOP_WORDS, fold, runs, split_identifier, stem

PERMISSIVE = re.compile(
    r"MIT|BSD|Apache|PSF|ISC|Expat|CC0|PostgreSQL|Public-Domain|Unlicense", re.I
)
COPYLEFT = re.compile(r"GPL|MPL|EPL|SA\b|share", re.I)
LONGEST = 24
ROUNDS = 8
LEAST = 3
MOST = 4
ENOUGH = 0.04


def english(text: str) -> list[str]:
    words = [part for run in runs(fold(text)) for part in split_identifier(run)]
    return [stem(w) for w in words if len(w) > 1 and w not in STOP_WORDS and not w.isdigit()]


def read(files):
    pairs = set()
    for file in files:
        for line in file.open(encoding="utf-8"):
            row = json.loads(line)
            licence = row["licence"] or ""
            if PERMISSIVE.search(licence) and not COPYLEFT.search(licence):
                pairs.add((row["en"], row["ja"]))
    for en, ja in sorted(pairs):
        left, right = sorted(set(units(ja))), sorted(set(english(en)))
        if 0 < len(left) <= LONGEST and 0 < len(right) <= LONGEST:
            yield left, right


def model1(source, target, group, size):
    """Return p(target | source) per co-occurrence entry; ``group`` names a target's occurrence."""
    keys, entry = np.unique(source * size + target, return_inverse=True)
    chance = np.full(len(keys), 1.0)
    of_source = keys // size
    for _ in range(ROUNDS):
        weight = chance[entry]
        share = weight / np.bincount(group, weights=weight)[group]
        counts = np.bincount(entry, weights=share)
        chance = counts / np.bincount(of_source, weights=counts)[of_source]
    return keys, chance


def learn(pairs):
    left_ids, right_ids = {}, {}
    left, right, by_right, by_left = [], [], [], []
    seen_left = collections.Counter()
    occurrence_right = occurrence_left = 0
    for units_, stems in pairs:
        ls = [left_ids.setdefault(u, len(left_ids)) for u in units_]
        rs = [right_ids.setdefault(s, len(right_ids)) for s in stems]
        seen_left.update(ls)
        for i, unit in enumerate(ls):
            for k, r in enumerate(rs):
                left.append(unit)
                right.append(r)
                by_right.append(occurrence_right + k)
                by_left.append(occurrence_left + i)
        occurrence_right += len(rs)
        occurrence_left += len(ls)
    left, right = np.array(left), np.array(right)
    size = max(len(left_ids), len(right_ids)) + 1
    forward = dict(zip(*model1(left, right, np.array(by_right), size), strict=True))
    keys, chances = model1(right, left, np.array(by_left), size)
    backward = {(k % size) * size + k // size: c for k, c in zip(keys, chances, strict=True)}
    return left_ids, right_ids, seen_left, forward, backward, size


def dictionary(pairs):
    left_ids, right_ids, seen, forward, backward, size = learn(pairs)
    names = {i: s for s, i in right_ids.items()}
    words = {i: u for u, i in left_ids.items()}
    found = collections.defaultdict(dict)
    for key, chance in forward.items():
        left, right = int(key // size), int(key % size)
        agreed = (chance * backward.get(key, 0.0)) ** 0.5
        if seen[left] >= LEAST and agreed >= ENOUGH:
            found[words[left]][names[right]] = agreed
    out = {}
    for unit, stems in sorted(found.items()):
        best = sorted(stems.items(), key=lambda item: -item[1])[:MOST]
        top = best[0][1]
        out[unit] = {s: round(float(v / top), 2) for s, v in best if v >= 0.3 * top}
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", nargs="+", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path, required=True)
    given = parser.parse_args()
    learned = dictionary(list(read(given.pairs)))
    rows = ",\n".join(
        f"{json.dumps(k, ensure_ascii=False)}: {json.dumps(v)}" for k, v in learned.items()
    )
    given.write.write_text("{\n" + rows + "\n}\n", "utf-8")
    print(f"{len(learned)} units, {given.write.stat().st_size} bytes")


if __name__ == "__main__":
    main()
