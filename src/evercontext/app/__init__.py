"""The composition root: the only room that knows every other."""

from evercontext.app.house import EverContext
from evercontext.app.models import (
    available_models,
    canonical_name,
    choose_model,
    open_model,
    pull_model,
    test_model,
)

__all__ = [
    "EverContext",
    "available_models",
    "canonical_name",
    "choose_model",
    "open_model",
    "pull_model",
    "test_model",
]
