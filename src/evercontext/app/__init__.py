"""The composition root: the one place that opens the parts and connects them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evercontext.app.application import EverContext as EverContext
    from evercontext.app.models import available_models as available_models
    from evercontext.app.models import canonical_name as canonical_name
    from evercontext.app.models import choose_model as choose_model
    from evercontext.app.models import open_model as open_model
    from evercontext.app.models import pull_model as pull_model
    from evercontext.app.models import test_model as test_model

# Loaded when first used: a search needs the index, not the agent, the servers or the memory.
_MODULES = {
    "EverContext": "application",
    "available_models": "models",
    "canonical_name": "models",
    "choose_model": "models",
    "open_model": "models",
    "pull_model": "models",
    "test_model": "models",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
