"""Which of a test's parameters the quick tier leaves to ``dev.py check --all``."""

from __future__ import annotations

from typing import Any

import pytest


def slow(*values: Any) -> Any:
    """Return one set of parameters for the slow tier; the quick one needs a sibling of it."""
    return pytest.param(*values, marks=pytest.mark.slow)
