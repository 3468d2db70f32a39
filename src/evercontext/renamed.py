"""Keep the former names of modules importable, with a warning, for one release.

``import evercontext.old`` gives the module of the new name. Rows leave this table with the release
after the one that renamed their module.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.abc import Loader  # its import costs more than all of this package's start

# Former name -> present name.
RENAMED: dict[str, str] = {}


class RenamedModules:
    """Find modules by their former names; asked only where nothing else has the name."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load a former name, or nothing for any other."""
        return ModuleSpec(name, cast("Loader", self)) if name in RENAMED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave the placeholder to the import system; `exec_module` replaces it."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put the present module where the former name is looked up."""
        former, present = module.__name__, RENAMED[module.__name__]
        warnings.warn(
            f"{former} is now {present}; the former name goes with the next release",
            DeprecationWarning,
            stacklevel=2,  # frames of the import system are not counted
        )
        sys.modules[former] = import_module(present)


def install() -> None:
    """Look up former names from now on."""
    if not any(isinstance(finder, RenamedModules) for finder in sys.meta_path):
        sys.meta_path.append(RenamedModules())
