"""Record the ports EverContext listens on, which commands may not reach.

Each serving process leaves a note in the home folder, with the process that it belongs to; a note
of one that ended counts for nothing.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evercontext.process.process_identity import is_alive, owner_of

_FOLDER = "listening"


@contextmanager
def announced(home: Path, ports: Iterable[int]) -> Iterator[None]:
    """Note these ports as ours until the block ends."""
    folder = home / _FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    note = folder / f"{os.getpid()}-{secrets.token_hex(4)}.json"
    fresh = note.with_suffix(".tmp")
    fresh.write_text(json.dumps({"owner": owner_of(os.getpid()), "ports": sorted(ports)}))
    fresh.replace(note)
    try:
        yield
    finally:
        note.unlink(missing_ok=True)


def ports_of_servers(home: Path) -> frozenset[int]:
    """The ports of every server of this home that is alive now; notes of dead ones are removed."""
    ports: set[int] = set()
    for note in (home / _FOLDER).glob("*.json"):
        try:
            entry = json.loads(note.read_bytes())
            owner, noted = entry["owner"], [int(port) for port in entry["ports"]]
        except (OSError, ValueError, TypeError, KeyError):
            continue
        if is_alive(owner, elsewhere=True):
            ports.update(noted)
        else:
            with suppress(OSError):
                note.unlink()
    return frozenset(ports)
