"""Save a corpus to a file that is mapped, so that a single search starts at once.

The file is a cache of the table and nothing else. It names the table and the generation it was
made from, and carries a checksum; one that does not fit, or is damaged, is thrown away.
"""

from __future__ import annotations

import json
import mmap
import os
import stat
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evercontext.index.corpus import COLUMNS, Corpus
from evercontext.retrieval.postings import Column, Postings
from evercontext.retrieval.vectors import VectorSpace

FILE = "corpus.cache"
MAGIC = b"ECCORP02"
_PREFIX = 24
"""Magic, size of the head, checksum of the head, checksum of the rest."""
_ALIGNED = 64
_LONGEST_HEAD = 65_536
_BARE = ("terms", "symbols", "symbol_files")
_LISTS = ("body", "fields")


class Unusable(Exception):
    """A file that is no snapshot of this table."""


@dataclass(frozen=True, slots=True)
class CorpusStamp:
    """What a snapshot was made from."""

    table: str
    generation: int
    space: str
    """Whose vectors it holds, and of how many dimensions."""


def space_of(vectors: VectorSpace | None) -> str:
    """Return the name of a vector space."""
    return f"{vectors.name} {vectors.dimensions}" if vectors else "words"


def save(folder: Path, corpus: Corpus, stamp: CorpusStamp) -> None:
    """Write a corpus that was just built; raise OSError where that cannot be."""
    arrays = {name: np.ascontiguousarray(array) for name, array in _arrays(corpus).items()}
    head = json.dumps(
        {
            "table": stamp.table,
            "generation": stamp.generation,
            "space": stamp.space,
            "files": corpus.live_files,
            "chunks": corpus.live_chunks,
            "lengths": corpus.total_lengths.tolist(),
            "arrays": {n: [a.dtype.str, list(a.shape)] for n, a in arrays.items()},
        }
    ).encode()
    head += b" " * (-(len(head) + _PREFIX) % _ALIGNED)
    check = 0
    for array in arrays.values():
        check = zlib.crc32(_padding(array.nbytes), zlib.crc32(_bytes(array), check))
    numbers = np.array([len(head), zlib.crc32(head), check, 0], "<u4")
    target = folder / f"{FILE}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileNotFoundError):
        target.unlink()
    try:
        with os.fdopen(os.open(target, flags, 0o600), "wb") as file:
            file.write(MAGIC + numbers.tobytes() + head)
            for array in arrays.values():
                file.write(_bytes(array))
                file.write(_padding(array.nbytes))
        target.replace(folder / FILE)
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def load(folder: Path, table: str, vectors: VectorSpace | None) -> tuple[Corpus, int] | None:
    """Return the corpus and its generation; ``None`` where there is no usable snapshot."""
    try:
        return _load(_mapped(folder / FILE), table, vectors)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, Unusable):
        drop(folder)
        return None


def drop(folder: Path) -> None:
    """Throw the snapshot away."""
    with suppress(OSError):
        (folder / FILE).unlink()


def _mapped(path: Path) -> mmap.mmap:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise Unusable("not a regular file")
        # Written to in memory only: numbers of files that change later are corrected in place.
        return mmap.mmap(fd, 0, access=mmap.ACCESS_COPY)
    finally:
        os.close(fd)


def _load(data: mmap.mmap, table: str, vectors: VectorSpace | None) -> tuple[Corpus, int]:
    if data[: len(MAGIC)] != MAGIC:
        raise Unusable("another format")
    size, head_check, check, _ = np.frombuffer(data, "<u4", 4, len(MAGIC)).tolist()
    text = data[_PREFIX : _PREFIX + min(size, _LONGEST_HEAD)]
    rest = np.frombuffer(data, np.uint8, offset=_PREFIX + len(text))
    if zlib.crc32(text) != head_check or zlib.crc32(rest.data) != check:
        raise Unusable("damaged")
    head = json.loads(text)
    if head["table"] != table or head["space"] != space_of(vectors):
        raise Unusable("of another table")
    return _corpus(head, rest, vectors), int(head["generation"])


def _corpus(head: dict[str, Any], data: NDArray[np.uint8], vectors: VectorSpace | None) -> Corpus:
    arrays: dict[str, NDArray[Any]] = {}
    at = 0
    for name, (dtype, shape) in head["arrays"].items():
        size = np.dtype(dtype).itemsize * int(np.prod(shape))
        arrays[name] = data[at : at + size].view(dtype).reshape(shape)
        at += size + -size % _ALIGNED
    corpus = Corpus(vectors)
    corpus.columns = {name: Column.of(arrays[name]) for name in COLUMNS}
    for name in _BARE:
        setattr(corpus, name, arrays[name])
    for name in _LISTS:
        parts = [arrays[f"{name}_{part}"] for part in ("starts", "documents", "counts")]
        setattr(corpus, name, Postings.of_arrays(*parts))
    corpus.live_files, corpus.live_chunks = head["files"], head["chunks"]
    corpus.total_lengths = np.array(head["lengths"], np.float64)
    return corpus


def _arrays(corpus: Corpus) -> dict[str, NDArray[Any]]:
    arrays = {name: corpus.values(name) for name in COLUMNS}
    arrays |= {name: getattr(corpus, name) for name in _BARE}
    for name in _LISTS:
        starts, documents, counts = getattr(corpus, name).arrays
        arrays |= {
            f"{name}_starts": starts,
            f"{name}_documents": documents,
            f"{name}_counts": counts,
        }
    return arrays


def _bytes(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _padding(size: int) -> bytes:
    return b"\0" * (-size % _ALIGNED)
