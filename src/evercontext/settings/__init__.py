"""One frozen object for every setting: flag > environment > project file > user file > default.

This is the only package that reads ``os.environ``. The project file is ``evercontext.toml`` at the
root; until its exact content is trusted (``evercontext config trust``) it can only tighten. Each
setting says what a project may do with it (``project``). Keys of providers come from the
environment or from where ``evercontext setup`` stored them (``keys``); other files may hold none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evercontext.settings.environment import process_environment as process_environment
    from evercontext.settings.hook_config import Hook as Hook
    from evercontext.settings.provider_keys import KEY_FILE as KEY_FILE
    from evercontext.settings.provider_keys import STORED as STORED
    from evercontext.settings.provider_keys import clean_key as clean_key
    from evercontext.settings.provider_keys import masked as masked
    from evercontext.settings.provider_keys import remove_key as remove_key
    from evercontext.settings.provider_keys import store_key as store_key
    from evercontext.settings.schema import Settings as Settings
    from evercontext.settings.schema import is_secret as is_secret
    from evercontext.settings.schema import rows as rows
    from evercontext.settings.sources import PROJECT_FILE as PROJECT_FILE
    from evercontext.settings.sources import TRUST_FILE as TRUST_FILE
    from evercontext.settings.sources import USER_FILE as USER_FILE
    from evercontext.settings.sources import forget as forget
    from evercontext.settings.sources import is_trusted as is_trusted
    from evercontext.settings.sources import keep as keep
    from evercontext.settings.sources import load as load
    from evercontext.settings.sources import load_despite_problems as load_despite_problems
    from evercontext.settings.sources import project_hooks as project_hooks
    from evercontext.settings.sources import read_project_file as read_project_file
    from evercontext.settings.sources import trust as trust
    from evercontext.settings.sources import untrust as untrust

# Loaded when first used: `--help` needs to know the language, and no setting.
_MODULES = {
    "Hook": "hook_config",
    "KEY_FILE": "provider_keys",
    "PROJECT_FILE": "sources",
    "STORED": "provider_keys",
    "Settings": "schema",
    "TRUST_FILE": "sources",
    "USER_FILE": "sources",
    "clean_key": "provider_keys",
    "forget": "sources",
    "is_secret": "schema",
    "is_trusted": "sources",
    "keep": "sources",
    "load": "sources",
    "load_despite_problems": "sources",
    "masked": "provider_keys",
    "process_environment": "environment",
    "project_hooks": "sources",
    "read_project_file": "sources",
    "remove_key": "provider_keys",
    "rows": "schema",
    "store_key": "provider_keys",
    "trust": "sources",
    "untrust": "sources",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
