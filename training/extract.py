"""Turn downloaded packages into pairs, one JSON line each.

    python -m training.extract OUT SOURCE...

Writes ``code.jsonl`` (comment, definition), ``text.jsonl`` (English, English) and
``japanese.jsonl`` (English, Japanese), each line with package and licence, and ``licences.jsonl``
with what was decided about every package.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from training import prose
from training.archives import members
from training.catalogues import good_pair, machine_object, portable_object, twin_key, twins
from training.exclusions import is_benchmark_package, is_benchmark_path
from training.functions import LANGUAGES, pairs_of
from training.licences import debian_licences, permits

MOST_OF_ONE_PACKAGE = 1500
_SKIP = re.compile(
    r"/(tests?|testing|__tests__|testdata|fixtures|node_modules|_vendor|vendor|examples?"
    r"|third_party|dist/|min/)/|\.min\.|_pb2\.py|\.pb\.go|zz_generated|_test\.go",
    re.I,
)


def wanted(path: str, size: int) -> bool:
    """True for source files, catalogues, and the files that describe a package."""
    if size > 3_000_000:
        return bool(re.search(r"(ja|en)[^/]*\.json$", path)) and size < 12_000_000
    low = path.lower()
    if low.endswith(("/copyright", "/metadata", "/pkg-info", "readme.md", "package.json")):
        return True
    if "/lc_messages/" in low and low.endswith((".mo", ".po")):
        return "/ja/" in low or "/ja_jp/" in low
    if low.endswith((".json", ".js", ".ts", ".mjs")) and (
        twin_key(path, "ja") or twin_key(path, "en")
    ):
        return True
    return low.rpartition(".")[2] in LANGUAGES and not _SKIP.search(path) and size < 600_000


def catalogues_alone(path: str, size: int) -> bool:
    """True for message catalogues and copyright files: a quick pass for Japanese."""
    low = path.lower()
    if low.endswith((".py", ".go", ".rs", ".rb", ".md", "metadata", "package.json")):
        return False
    return wanted(path, size) and (low.rpartition(".")[2] not in LANGUAGES or size < 400_000)


class Writer:
    """The three files of pairs; drops what was written before."""

    def __init__(self, out: Path) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self._files: dict[str, TextIO] = {
            name: (out / f"{name}.jsonl").open("a", encoding="utf-8")
            for name in ("code", "text", "japanese", "licences")
        }
        self._seen: set[bytes] = set()
        self.count = dict.fromkeys(self._files, 0)

    def write(self, name: str, line: dict[str, object], identity: str) -> None:
        digest = hashlib.blake2b(f"{name}\n{identity}".encode(), digest_size=8).digest()
        if digest not in self._seen:
            self._seen.add(digest)
            self.count[name] += 1
            self._files[name].write(json.dumps(line, ensure_ascii=False) + "\n")


def code_lines(files: dict[str, bytes]) -> Iterator[dict[str, object]]:
    """Yield the pairs of a package's source files, at most so many, chosen by hash."""
    found = []
    for path, content in files.items():
        ending = path.rpartition(".")[2].lower()
        if ending not in LANGUAGES or is_benchmark_path(path) or _SKIP.search(path):
            continue
        for pair in pairs_of(path, content.decode("utf-8", "replace")):
            found.append(
                {
                    "language": ending,
                    "path": path[-80:],
                    "kind": pair.kind,
                    "doc": pair.doc,
                    "code": pair.code,
                }
            )
    found.sort(key=lambda line: hashlib.md5(line["code"].encode()).digest())
    yield from found[:MOST_OF_ONE_PACKAGE]


def japanese_pairs(files: dict[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield (English, Japanese) of every catalogue in a package."""
    for path, content in files.items():
        if path.endswith(".mo"):
            yield from machine_object(content)
        elif path.endswith(".po"):
            yield from portable_object(content.decode("utf-8", "replace"))
    yield from twins(
        {p: c for p, c in files.items() if p.endswith((".json", ".js", ".ts", ".mjs"))}
    )


def licence_of(archive: Path, files: dict[str, bytes]) -> str | None:
    """Return the permissive licence of a package, or None."""
    if archive.suffix == ".deb":
        texts = [c for p, c in files.items() if p.endswith("/copyright")]
        named = debian_licences(texts[0].decode("utf-8", "replace")) if texts else None
        return " and ".join(sorted(set(named))) if named and all(map(permits, named)) else None
    return None


def one(archive: Path, name: str, licence: str | None, origin: str, writer: Writer) -> None:
    """Write what one package gives."""
    if is_benchmark_package(name):
        return
    everything = os.environ.get("ONLY") != "japanese"
    files = dict(members(archive, wanted if everything else catalogues_alone))
    if licence is None:
        licence = licence_of(archive, files)
    writer.write(
        "licences", {"package": name, "origin": origin, "licence": licence}, f"{origin}/{name}"
    )
    if licence is None:
        return
    base = {"package": name, "origin": origin, "licence": licence[:80]}
    for line in code_lines(files) if everything else ():
        writer.write("code", base | line, re.sub(r"\s", "", str(line["code"])))
    for kind, query, text in prose.pairs(files) if everything else ():
        writer.write("text", base | {"kind": kind, "query": query, "text": text}, f"{query}|{text}")
    for english, japanese in japanese_pairs(files):
        pair = good_pair(english, japanese)
        if pair:
            writer.write("japanese", base | {"en": pair[0], "ja": pair[1]}, "|".join(pair))


def sources(folder: Path) -> Iterator[tuple[Path, str, str | None, str]]:
    """Yield archive, package, licence if known, and origin of a folder of downloads."""
    shuffled = sorted(folder.glob("*.deb"), key=lambda p: hashlib.md5(p.name.encode()).digest())
    for archive in shuffled:
        yield archive, archive.stem, None, "debian"
    for about in sorted(folder.glob("*.json")):
        known = json.loads(about.read_text())
        if known.get("licence") and known.get("file"):
            origin = "npm" if known["file"].endswith(".tgz") else "pypi"
            yield folder / known["file"], known["name"], known["licence"], origin


def main() -> None:
    out = Path(sys.argv[1])
    writer = Writer(out)
    done_file = out / "done.txt"
    done = set(done_file.read_text().splitlines()) if done_file.exists() else set()
    with done_file.open("a") as log:
        for folder in map(Path, sys.argv[2:]):
            for archive, name, licence, origin in sources(folder):
                if str(archive) not in done and archive.exists():
                    one(archive, name, licence, origin, writer)
                    log.write(f"{archive}\n")
    print(writer.count)


if __name__ == "__main__":
    main()
