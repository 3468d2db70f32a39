"""Mask secrets before anything is written."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from evercontext.events.secret_rules import compiled, every_rule, shape_rules
from evercontext.settings import Settings, process_environment

MASK = "[redacted]"
Clean = Callable[[str], str]
"""Returns a text without its secrets."""
LONGEST = 262_144
"""Characters of one string that are kept; the rest is cut with a mark."""
MARGIN = 16_384
"""Characters behind the cut that are looked at too: a secret may lie across it."""

WORK = 4_000_000
"""Characters times kinds of secrets that one text is looked through for, as the loop waits."""
_SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|(^|_)(PASS|PWD|AUTH)$|_PASS_|CREDENTIAL", re.IGNORECASE
)
_INNOCENT = frozenset({"PWD", "OLDPWD"})
_SHORTEST = 8
_NAMED = 256
_URL_SAFE = str.maketrans("+/", "-_")


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
        self._known_mark: Any = None
        self._odd: list[str] = []
        self._marks: Any = None
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Mask these too from now on: credentials that are known only when they are used."""
        more = self._secrets | {s for s in secrets if len(s) >= _SHORTEST}
        if more == self._secrets:
            return
        self._secrets = more
        # Longest first, or the rest of a longer secret would survive a shorter one inside it.
        spellings = {spelling for secret in more for spelling in _spellings(secret)}
        self._known = re.compile("|".join(map(re.escape, sorted(spellings, key=_longest_first))))
        self._known_mark = self._marks = None
        self._odd = [spelling for spelling in spellings if not _is_unicode(spelling)]

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
        if self._marks is None:
            written = (_dumped(spelling)[1:-1] for spelling in self._usual())
            parts = (every_rule().marks, *map(re.escape, written))
            self._marks = compiled("|".join(parts))
        if self._marks.search(_encoded(line)) is not None:
            return True
        return any(_dumped(spelling)[1:-1] in line for spelling in self._odd)

    def _usual(self) -> list[str]:
        """The spellings of known secrets that RE2 can look for."""
        spellings = {spelling for secret in self._secrets for spelling in _spellings(secret)}
        return sorted(spellings.difference(self._odd))

    def without_known(self, text: str) -> str:
        """Return the text without known secret values, every line where it was."""
        if self._known is None or not any(secret in text for secret in self._secrets):
            return text
        return self._known.sub(lambda match: MASK + "\n" * match[0].count("\n"), text)

    def without_shapes(self, text: str) -> str:
        """Return the text without what looks like a credential, every line where it was."""
        data = _encoded(text)
        spans = shape_rules().spans(data)
        return _masked(data, spans, keep_lines=True) if spans else text

    def masked(self, text: str) -> str:
        """Return the whole text without secrets, however long it is."""
        text, data = self._unknown(text)
        spans = every_rule().spans(data)
        return _masked(data, spans) if spans else text

    def _unknown(self, text: str) -> tuple[str, bytes]:
        """Return the text without known values, and the same in UTF-8."""
        data = _encoded(text)
        if self._known is None:
            return text, data
        if self._known_mark is None:
            self._known_mark = compiled("|".join(map(re.escape, self._usual())))
        # Replacing by the slower engine is worth its time only where there is something.
        if self._known_mark.search(data) is None and not any(odd in text for odd in self._odd):
            return text, data
        text = self._known.sub(MASK, text)
        return text, _encoded(text)

    def text(self, text: str) -> str:
        """Return the text without secrets, cut where it is longer than a log keeps."""
        size, longest = len(text), LONGEST
        text = text[: LONGEST + MARGIN]
        text, data = self._unknown(text)
        kinds = every_rule().candidates(data)
        if kinds:
            # A text of every vendor's name would be looked through for every vendor's keys.
            longest = min(LONGEST, max(MARGIN, WORK // len(kinds)))
            text = text[: longest + MARGIN]
            data = _encoded(text)
            spans = every_rule().spans(data, kinds)
            text = _masked(data, spans) if spans else text
        if size > longest + MARGIN or len(text) > longest:
            return f"{text[:longest]}… [{max(size - longest, 1)} more characters]"
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value without secrets, keys included."""
        if isinstance(value, Mapping):
            return {self.text(str(k)): self._named(str(k), v) for k, v in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(item) for item in value]
        return cleaned(value, self.text)

    def _named(self, name: str, value: Any) -> Any:
        """Mask a value that its own shape does not tell, but the name that it has."""
        if isinstance(value, str) and names_secret(name) and len(value) <= _NAMED:
            data = _encoded(f'{name}: "{value}"')
            if every_rule().spans(data):
                return MASK
        return self.value(value)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _masked(data: bytes, spans: list[tuple[int, int]], *, keep_lines: bool = False) -> str:
    parts, done = [], 0
    for begin, end in spans:
        lines = data.count(b"\n", begin, end) if keep_lines else 0
        parts += [data[done:begin], MASK.encode(), b"\n" * lines]
        done = end
    return b"".join((*parts, data[done:])).decode("utf-8", "surrogatepass")


def _is_unicode(text: str) -> bool:
    """False for what came from bytes that are no UTF-8; RE2 takes no pattern with such."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _longest_first(text: str) -> tuple[int, str]:
    return -len(text), text


def _spellings(secret: str) -> Iterator[str]:
    """A secret as it is, in an address, and in base64 wherever it begins in what was encoded."""
    yield secret
    data = _encoded(secret)
    yield quote(data, safe="")
    for before in range(3):
        # Only the characters that no neighbour has a bit in are the same in every text.
        encoded = base64.b64encode(bytes(before) + data).decode()
        first, last = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        yield encoded[first:last]
        yield encoded[first:last].translate(_URL_SAFE)


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
