"""Which user of this machine sent a request: the kernel knows whose socket it came from."""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path

Address = tuple[str, int]
_TABLES = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
_LOCAL, _REMOTE, _STATE, _USER = 1, 2, 3, 7
_ESTABLISHED = "01"


def is_other_user(client: Address, server: Address) -> bool:
    """True if another user of this machine, root excepted, has the client's end.

    False where it cannot be known: on systems without the kernel's table, and for a client that
    has closed its end already.
    """
    user = user_of(client, server)
    return user not in (None, 0, os.getuid())


def user_of(client: Address, server: Address) -> int | None:
    """The user whose socket is the client's end of a connection within this machine."""
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    ours = f" {_written(client, family)} {_written(server, family)} {_ESTABLISHED} "
    try:
        with _TABLES[family].open(encoding="ascii") as table:
            row = next((line for line in table if ours in line), None)
    except OSError:
        return None
    return int(row.split()[_USER]) if row else None


def _written(address: Address, family: int) -> str:
    """An address as the table has it: words of four bytes in the machine's order."""
    packed = socket.inet_pton(family, address[0].partition("%")[0])
    words = struct.unpack(f"!{len(packed) // 4}I", packed)
    order = "<" if sys.byteorder == "little" else ">"
    text = b"".join(struct.pack(f"{order}I", word) for word in words).hex().upper()
    return f"{text}:{address[1]:04X}"
