"""Gather extracted pairs into one data set: each once, split by package, no benchmark in it."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from training.fingerprints import fingerprint

TEST, DEV, TRAIN = "test", "dev", "train"
_PREFIX = re.compile(
    r"^(python3?-|py|golang-(github|gopkg|golang)?-?|librust-|ruby-|node-|php-|lua-|@[^/]+/)"
)
MOST_OF_ONE_DOC = 3


def package_key(name: str) -> str:
    """Return the name under which a package's ports to several registries are one."""
    key = re.sub(r"(-\d[\d.]*)?(-dev|-doc|-common)?$", "", name.lower().replace("_", "-"))
    return _PREFIX.sub("", key).rpartition("/")[2] or key


def split_of(name: str) -> str:
    """Return to which part a whole package belongs; decided by its name alone."""
    bucket = int(hashlib.md5(package_key(name).encode()).hexdigest(), 16) % 40
    return TEST if bucket == 0 else DEV if bucket == 1 else TRAIN


@dataclass(slots=True)
class DataSet:
    """Pairs by use; a pair is (question, document, group)."""

    code: dict[str, list[tuple[str, str, str]]] = field(
        default_factory=lambda: {TEST: [], DEV: [], TRAIN: []}
    )
    languages: dict[str, list[str]] = field(default_factory=lambda: {TEST: [], DEV: [], TRAIN: []})
    text: list[tuple[str, str, str]] = field(default_factory=list)
    japanese: list[tuple[str, str, str]] = field(default_factory=list)


def lines_of(folder: Path, name: str) -> Iterator[dict[str, str]]:
    """Yield the lines of every file of that name under a folder, in one fixed order."""
    for path in sorted(folder.rglob(f"{name}.jsonl")):
        with path.open(encoding="utf-8") as opened:
            for line in opened:
                if line.endswith("\n"):
                    yield json.loads(line)


def gather(folder: Path, banned: set[str], banned_texts: set[str]) -> DataSet:
    """Return the data set of everything extracted under a folder."""
    data = DataSet()
    _gather_code(folder, banned, data)
    seen: set[str] = set()
    for line in lines_of(folder, "text"):
        identity = fingerprint(line["query"] + line["text"])
        words = {
            fingerprint(part)
            for part in re.split(r"(?<=[.])\s|: ", line["query"] + " : " + line["text"])
        }
        if identity not in seen and not words & banned_texts:
            seen.add(identity)
            data.text.append((line["query"][:320], line["text"][:500], line["kind"]))
    seen = set()
    for line in lines_of(folder, "japanese"):
        if line["package"].startswith("monaco"):
            continue  # its strings have numbers instead of names, and the numbers differ
        if (identity := line["en"] + "|" + line["ja"]) not in seen:
            seen.add(identity)
            data.japanese.append((line["ja"], line["en"], package_key(line["package"])))
    for part in (data.text, data.japanese, *data.code.values()):
        assert part
    return data


def _gather_code(folder: Path, banned: set[str], data: DataSet) -> None:
    lines = sorted(lines_of(folder, "code"), key=lambda line: split_of(line["package"]) == TRAIN)
    seen: set[str] = set()
    kept_aside: set[str] = set()
    docs: Counter[str] = Counter()
    for line in lines:
        code, doc = fingerprint(line["code"]), fingerprint("doc:" + line["doc"])
        part = split_of(line["package"])
        docs[doc] += 1
        if (
            code in seen
            or {code, doc} & banned
            or docs[doc] > (MOST_OF_ONE_DOC if part == TRAIN else 1)
        ):
            continue
        if part == TRAIN and doc in kept_aside:
            continue
        if part != TRAIN:
            kept_aside.add(doc)
        seen.add(code)
        data.code[part].append((line["doc"], line["code"], line["package"]))
        data.languages[part].append(line["language"])


def wordnet_pairs(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (words, meaning) and (example, meaning) of a WordNet dictionary folder."""
    for name in ("noun", "verb", "adj", "adv"):
        path = folder / f"data.{name}"
        if not path.exists():
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            head, _, gloss = line.partition(" | ")
            fields = head.split()
            if line.startswith(" ") or len(fields) < 6:
                continue
            count = int(fields[3], 16)
            words = [fields[4 + 2 * i].replace("_", " ") for i in range(count)]
            if any(w[:1].isupper() for w in words):
                continue
            meaning, *examples = (part.strip(' "') for part in gloss.split(";"))
            yield ", ".join(words[:4]), meaning, "gloss"
            for example in examples[:1]:
                if len(example.split()) > 4:
                    yield example, f"{words[0]}: {meaning}", "example"


def sample_test(data: DataSet, size: int, part: str = TEST, seed: int = 11) -> list[int]:
    """Return places of test functions, at most thirty of one package."""
    order = list(range(len(data.code[part])))
    random.Random(seed).shuffle(order)
    per: Counter[str] = Counter()
    chosen = []
    for place in order:
        package = data.code[part][place][2]
        per[package] += 1
        if per[package] <= 30:
            chosen.append(place)
    return chosen[:size]
