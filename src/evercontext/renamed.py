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
RENAMED: dict[str, str] = {
    "evercontext.catalog.adopt": "evercontext.catalog.validation",
    "evercontext.catalog.card": "evercontext.catalog.entry",
    "evercontext.catalog.event_stream": "evercontext.mcp.client.event_stream",
    "evercontext.catalog.everyday": "evercontext.catalog.synonyms",
    "evercontext.catalog.greeting": "evercontext.mcp.client.handshake",
    "evercontext.catalog.http": "evercontext.mcp.client.http",
    "evercontext.catalog.http1": "evercontext.mcp.client.http1",
    "evercontext.catalog.listing": "evercontext.mcp.client.listing",
    "evercontext.catalog.picking": "evercontext.catalog.model_search",
    "evercontext.catalog.request": "evercontext.catalog.query_cleaning",
    "evercontext.catalog.shelves": "evercontext.catalog.resources",
    "evercontext.catalog.sse": "evercontext.mcp.client.sse",
    "evercontext.catalog.stdio": "evercontext.mcp.client.stdio",
    "evercontext.catalog.suspicion": "evercontext.catalog.injection_flags",
    "evercontext.catalog.wire": "evercontext.mcp.client.exchange",
    "evercontext.catalog.wording": "evercontext.catalog.query_words",
    "evercontext.server.answers": "evercontext.server.responses",
    "evercontext.server.catalog_search": "evercontext.server.router.catalog_search",
    "evercontext.server.client_files": "evercontext.cli.client_files",
    "evercontext.server.doors": "evercontext.server.exposed_tools",
    "evercontext.server.eras": "evercontext.mcp.revisions",
    "evercontext.server.figures": "evercontext.server.log_metrics",
    "evercontext.server.jsonc": "evercontext.cli.jsonc",
    "evercontext.server.leaving": "evercontext.server.disconnect",
    "evercontext.server.list_changes": "evercontext.server.router.list_changes",
    "evercontext.server.mcp": "evercontext.server.mcp_tools",
    "evercontext.server.mcp_install": "evercontext.cli.mcp_install",
    "evercontext.server.offer": "evercontext.server.router.offer",
    "evercontext.server.on_demand": "evercontext.server.lazy_app",
    "evercontext.server.router_answers": "evercontext.server.router.results",
    "evercontext.server.router_stdio": "evercontext.server.router.stdio",
    "evercontext.server.stdin": "evercontext.process.stdin",
    "evercontext.server.visitors": "evercontext.server.router.authentication",
    "evercontext.server.watch": "evercontext.server.disconnect_watcher",
    "evercontext.retrieval.static_model": "evercontext.retrieval.static_vectors",
}


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
