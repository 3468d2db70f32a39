"""Read the files inside packages of three registries, without unpacking them to disk."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

Want = Callable[[str, int], bool]


def members(archive: Path, want: Want) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the wanted files; a broken archive ends quietly."""
    try:
        if archive.suffix == ".deb":
            yield from _tar(_deb_data(archive.read_bytes()), want)
        elif archive.suffix in (".whl", ".zip"):
            yield from _zip(archive, want)
        else:
            yield from _tar(io.BytesIO(archive.read_bytes()), want)
    except (OSError, tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, EOFError, ValueError):
        return


def _deb_data(content: bytes) -> io.BytesIO:
    at = 8
    while at < len(content):
        name = content[at : at + 16].decode("ascii", "replace").strip().rstrip("/")
        size = int(content[at + 48 : at + 58])
        body = content[at + 60 : at + 60 + size]
        if name.startswith("data.tar"):
            if name.endswith(".xz"):
                body = lzma.decompress(body)
            elif name.endswith(".gz"):
                body = gzip.decompress(body)
            return io.BytesIO(body)
        at += 60 + size + size % 2
    raise ValueError("no data member")


def _tar(content: io.BytesIO, want: Want) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=content) as tar:
        for member in tar:
            if member.isfile() and want(member.name, member.size):
                opened = tar.extractfile(member)
                if opened is not None:
                    yield member.name.removeprefix("./"), opened.read()


def _zip(archive: Path, want: Want) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.infolist():
            if want(entry.filename, entry.file_size):
                yield entry.filename, opened.read(entry)
