"""One frozen object for every setting: flag > environment > project file > user file > default.

This is the only package that reads ``os.environ``. The project file is ``evercontext.toml`` at the
root; until its exact content is trusted (``evercontext config trust``) it can only tighten. Each
setting says what a project may do with it (``project``). Keys of providers come from the
environment or from where ``evercontext setup`` stored them (``keys``); other files may hold none.
"""

from evercontext.settings.hook_config import Hook
from evercontext.settings.provider_keys import (
    KEY_FILE,
    STORED,
    clean_key,
    masked,
    remove_key,
    store_key,
)
from evercontext.settings.schema import Settings, is_secret, rows
from evercontext.settings.sources import (
    PROJECT_FILE,
    TRUST_FILE,
    USER_FILE,
    forget,
    is_trusted,
    keep,
    load,
    load_despite_problems,
    process_environment,
    project_hooks,
    read_project_file,
    trust,
    untrust,
)

__all__ = [
    "KEY_FILE",
    "PROJECT_FILE",
    "STORED",
    "TRUST_FILE",
    "USER_FILE",
    "Hook",
    "Settings",
    "clean_key",
    "forget",
    "is_secret",
    "is_trusted",
    "keep",
    "load",
    "load_despite_problems",
    "masked",
    "process_environment",
    "project_hooks",
    "read_project_file",
    "remove_key",
    "rows",
    "store_key",
    "trust",
    "untrust",
]
