"""Copy the environment of this process, without loading any setting."""

from __future__ import annotations

import os


def process_environment() -> dict[str, str]:
    """A copy of this process's environment, for packages that filter it for their children."""
    return dict(os.environ)
