"""Build the bubblewrap command line: own namespaces, a limited view of the file system."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

WRITABLE = stat.S_IFDIR | 0o222
FIX = (
    "Install bubblewrap (apt, dnf or pacman: the package bubblewrap), or use Linux 6.12 or later "
    "with Landlock"
)


def program() -> str | None:
    """Return the path of bubblewrap if it is installed."""
    return shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")


@dataclass(frozen=True, slots=True)
class FilesystemView:
    """The file system and the namespaces of one command."""

    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    protected: tuple[Path, ...]
    reopened: tuple[Path, ...]
    hidden: tuple[Path, ...]
    scratch: Path
    """A directory of ours that becomes ``/tmp``."""
    network: bool
    shared_memory: int

    def arguments(self, bwrap: str, cwd: Path, filter_fd: int) -> list[str]:
        """Return the command line up to the command."""
        return [
            bwrap,
            *("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            *(["--share-net"] if self.network else []),
            *self._system(),
            *_mounts("--ro-bind-try", self.readable),
            *_mounts("--bind", self.writable),
            *_mounts("--ro-bind", self.protected),
            *_mounts("--bind", self.reopened),
            *self._masks(),
            *("--remount-ro", "/", "--seccomp", str(filter_fd), "--chdir", str(cwd), "--"),
        ]

    def _system(self) -> list[str]:
        size = str(self.shared_memory)
        return [
            *("--proc", "/proc", *_mounts("--ro-bind-try", _kernel_files())),
            *("--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm"),  # noqa: S108
            *("--bind", str(self.scratch), "/tmp"),  # noqa: S108 - ours, under its usual name
        ]

    def _masks(self) -> Iterator[str]:
        for path in self.hidden:
            if path.is_dir():
                yield from ("--tmpfs", str(path), "--remount-ro", str(path))
            else:
                yield from ("--ro-bind", "/dev/null", str(path))


def _kernel_files() -> list[Path]:
    """Return the kernel's own files in /proc that somebody may write.

    The superuser owns them and needs no capability for it; a few are open to everybody.
    """
    entries = (path for path in Path("/proc").iterdir() if not path.name.isdigit())
    return [path for path in entries if not path.is_symlink() and path.stat().st_mode & WRITABLE]


def _mounts(option: str, paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        yield from (option, str(path), str(path))
