"""Tell a directory on a local disk from one on a network, which may not answer."""

from __future__ import annotations

import os
from pathlib import Path

LOCAL_KINDS = frozenset({"ext2", "ext3", "ext4", "xfs", "f2fs", "tmpfs", "zfs", "overlay"})
_MOUNTS = Path("/proc/self/mountinfo")


def is_local(descriptor: int) -> bool:
    """True if an open directory is on a disk of this machine; False where that is not known."""
    device = os.fstat(descriptor).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(
        kind in LOCAL_KINDS
        for mounted, kind in map(_device_and_kind, mounts.splitlines())
        if mounted == number
    )


def _device_and_kind(mount: str) -> tuple[str, str]:
    fields = mount.split()
    return fields[2], fields[fields.index("-") + 1]
