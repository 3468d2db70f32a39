"""Convert tool names to what vendor APIs accept: letters, digits, ``_`` and ``-``, 64 at most."""

from __future__ import annotations

import re
from collections.abc import Iterable

from evercontext.domain.model import ToolSpec

_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 64


def to_wire(name: str) -> str:
    """Return ``run.lint`` as ``run__lint``."""
    return _REFUSED.sub("_", name.replace(".", "__"))[:_LONGEST]


class WireNames:
    """The names of one request, there and back."""

    def __init__(self, tools: Iterable[ToolSpec]) -> None:
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}
        for tool in tools:
            wire = self._free(to_wire(tool.name))
            self._there[tool.name] = wire
            self._back[wire] = tool.name

    def _free(self, wire: str) -> str:
        number = 1
        name = wire
        while name in self._back:
            number += 1
            name = f"{wire[: _LONGEST - 4]}_{number}"
        return name

    def there(self, name: str) -> str:
        """Return the name to send."""
        return self._there.get(name) or to_wire(name)

    def back(self, wire: str) -> str:
        """Return the tool's own name for one that was received."""
        return self._back.get(wire, wire)
