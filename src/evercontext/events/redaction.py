"""Mask secrets before anything is written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from evercontext.settings import Settings, process_environment

MASK = "[redacted]"
Clean = Callable[[str], str]
"""Returns a text without its secrets."""
LONGEST = 262_144
"""Characters of one string that are kept; the rest is cut with a mark."""
MARGIN = 16_384
"""Characters behind the cut that are looked at too: a secret may lie across it."""

# Shapes of well-known credentials. A false positive costs a word in a log, a miss costs a key.
# Words end in ASCII here: Japanese is written up to a key without a space.
_SHAPES = re.compile(
    r"""
      -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)
    | \b(?:sk|pk|rk)-[A-Za-z0-9_\-]{16,}
    | \b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,} | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \bglpat-[A-Za-z0-9_\-]{16,} | \bxox[abprs]-[A-Za-z0-9\-]{10,} | \bhf_[A-Za-z0-9]{20,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b | \bAIza[A-Za-z0-9_\-]{30,} | \bnpm_[A-Za-z0-9]{30,}
    # Looked for where a word begins: from every eyJ of a long one on it would take the square.
    | (?<![A-Za-z0-9_\-])(?=[A-Za-z0-9_\-]*+\.eyJ[A-Za-z0-9_\-]{8,}+\.)
      (?:[A-Za-z0-9_\-]*?[_\-])??eyJ[A-Za-z0-9_\-]{8,}+\.eyJ[A-Za-z0-9_\-]{8,}+\.[A-Za-z0-9_\-]*
    | (?<=[Bb]earer[ ])[A-Za-z0-9._~+/\-]{12,}=*
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
# One of these is in every text that has such a shape: looking for them is far cheaper.
SECRET_MARKS: tuple[str, ...] = (
    "-----BEGIN",
    "sk-",
    "pk-",
    "rk-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
    "hf_",
    "AKIA",
    "ASIA",
    "AIza",
    "npm_",
    "eyJ",
    "earer ",
)
_SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|(^|_)(PASS|PWD|AUTH)$|_PASS_|CREDENTIAL", re.IGNORECASE
)
_INNOCENT = frozenset({"PWD", "OLDPWD"})
_SHORTEST = 8


def names_secret(name: str) -> bool:
    """True if a variable's name says that its value is a secret."""
    return name not in _INNOCENT and bool(_SECRET_NAME.search(name))


def secret_values(environment: Mapping[str, str]) -> list[str]:
    """The values of variables whose names say that they are secrets."""
    return [
        value
        for name, value in environment.items()
        if names_secret(name) and len(value) >= _SHORTEST and not value.isdigit()
    ]


class Redactor:
    """Masks known secret values and everything that looks like a credential."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: frozenset[str] = frozenset()
        self._known: re.Pattern[str] | None = None
        self._marks = SECRET_MARKS
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Mask these too from now on: credentials that are known only when they are used."""
        more = self._secrets | {s for s in secrets if len(s) >= _SHORTEST}
        if more == self._secrets:
            return
        self._secrets = more
        # Longest first, or the rest of a longer secret would survive a shorter one inside it.
        known = sorted(more, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known)))
        self._marks = (*SECRET_MARKS, *(_dumped(secret)[1:-1] for secret in known))

    def line(self, value: Mapping[str, Any]) -> str:
        """Return a JSON object as one line without secrets."""
        try:
            line = _dumped(value)
        except TypeError:
            return _dumped(self.value(value))
        # Nearly every line is innocent, and is not taken apart to prove it.
        suspect = len(line) > LONGEST or self._is_marked(line)
        return _dumped(self.value(value)) if suspect else line

    def _is_marked(self, line: str) -> bool:
        # A plain loop: this runs for every line of the log, and a generator costs as much again.
        for mark in self._marks:  # noqa: SIM110
            if mark in line:
                return True
        return False

    def without_known(self, text: str) -> str:
        """Return the text without known secret values, every line where it was."""
        if self._known is None or not any(secret in text for secret in self._secrets):
            return text
        return self._known.sub(lambda match: MASK + "\n" * match[0].count("\n"), text)

    def masked(self, text: str) -> str:
        """Return the whole text without secrets, however long it is."""
        if self._known:
            text = self._known.sub(MASK, text)
        return _SHAPES.sub(MASK, text)

    def text(self, text: str) -> str:
        """Return the text without secrets, cut where it is longer than a log keeps."""
        size = len(text)
        text = self.masked(text[: LONGEST + MARGIN])
        if size > LONGEST + MARGIN or len(text) > LONGEST:
            return f"{text[:LONGEST]}… [{max(size - LONGEST, 1)} more characters]"
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value without secrets, keys included."""
        return cleaned(value, self.text)


def redactor(settings: Settings | None) -> Redactor:
    """Return the redactor of every secret in the environment and in the settings.

    Without settings, as before they are read, it knows those of the environment alone.
    """
    secrets = secret_values(process_environment())
    if settings is None:
        return Redactor(secrets)
    keys = (settings.openai_api_key, settings.anthropic_api_key)
    tokens = (settings.token, settings.catalog_token)
    secrets += [secret for secret in (*keys, *tokens) if secret]
    return Redactor([*secrets, *_login(settings.database_url or "")])


def _login(address: str) -> list[str]:
    """Name and password of a database together: a password alone is often a common word."""
    login = address.partition("//")[2].rpartition("@")[0]
    return [login] if ":" in login else []


def unchanged(text: str) -> str:
    """Return the text as it is: for places that hold no secrets."""
    return text


def cleaned(value: Any, clean: Clean) -> Any:
    """Return a JSON value with each of its texts cleaned, keys included, so that it stays JSON."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(k)): cleaned(v, clean) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [cleaned(item, clean) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return clean(str(value))


def _dumped(value: Any) -> str:
    return _encode(value)


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
