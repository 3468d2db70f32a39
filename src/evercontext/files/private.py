"""Folders of the home folder, which nobody else may look into."""

from __future__ import annotations

from pathlib import Path


def make_private(folder: Path) -> None:
    """Make a folder and the parents it lacks, closed to other users whatever the umask says.

    ``mkdir(parents=True, mode=…)`` gives the mode to the last folder alone.
    """
    if not folder.parent.is_dir():
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
