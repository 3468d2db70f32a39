"""One frozen object for every setting: flag > environment > project file > user file > default.

This is the only room that reads ``os.environ``. The project file is ``evercontext.toml`` at the
root; until its exact content is trusted (``evercontext config trust``) it can only tighten. Each
setting says what a project may do with it (``project``). Keys of providers live in the environment
alone and are refused in files.
"""

from evercontext.settings.hooks import Hook
from evercontext.settings.schema import Settings, is_secret, rows
from evercontext.settings.sources import (
    PROJECT_FILE,
    TRUST_FILE,
    USER_FILE,
    is_trusted,
    keep,
    load,
    process_environment,
    project_hooks,
    read_project_file,
    trust,
    untrust,
)

__all__ = [
    "PROJECT_FILE",
    "TRUST_FILE",
    "USER_FILE",
    "Hook",
    "Settings",
    "is_secret",
    "is_trusted",
    "keep",
    "load",
    "process_environment",
    "project_hooks",
    "read_project_file",
    "rows",
    "trust",
    "untrust",
]
