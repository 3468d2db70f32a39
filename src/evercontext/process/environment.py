"""Filter the environment of a child by an allow-list, without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

ALLOWED = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TERM",
        "COLORTERM",
        "COLUMNS",
        "LINES",
        "NO_COLOR",
        "TMPDIR",
        "TZ",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "CONDA_DEFAULT_ENV",
        "PYENV_ROOT",
        "PYENV_VERSION",
        "PYTHONPATH",
        "PYTEST_ADDOPTS",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
        "PYTEST_PLUGINS",
        "WORKON_HOME",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
    }
)
SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
BARE = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
"""What a child gets when nobody gave it anything."""


def allowed(name: str) -> bool:
    """Return True if a child may see the variable without having been given it by name."""
    return (name in ALLOWED or name.startswith("LC_")) and not SECRET_NAME.search(name)


def filtered(environment: Mapping[str, str], *, extra: Iterable[str] = ()) -> dict[str, str]:
    """Return what a child may see of ``environment``.

    ``extra`` names variables that this child needs and that the caller hands over on purpose,
    such as a vendor CLI's own key.
    """
    passed_on = {name: value for name, value in environment.items() if allowed(name)}
    named = {name: environment[name] for name in extra if name in environment}
    return {**BARE, **passed_on, **named}
