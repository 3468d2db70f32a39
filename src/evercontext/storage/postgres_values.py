"""Convert placeholders, values and errors between the two databases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import psycopg

from evercontext.errors import (
    DiskFull,
    EverContextError,
    StoreBusy,
    StoreClash,
    StoreConflict,
    StoreForbidden,
    StoreGone,
    StoreProblem,
    StoreTimeout,
)
from evercontext.storage.sqlite_connection import UNHOLDABLE, took_too_long
from evercontext.storage.store import LOCKED_OUT, Parameters, Row

_STRING_OR_MARK = re.compile(r"'(?:[^']|'')*'|\?")
# PostgreSQL holds no NUL in a text. A private character stands for it, and escapes itself.
_LARGEST = 2**63
_MARK = "\U000f00fe"
_FIX = "Check that the server of EC_DATABASE_URL runs, then try again"
_MEMBERS_ONLY = "Let an admin of the project run: evercontext users grant"
_UNCLEAR = f"{_FIX}. If it does: {LOCKED_OUT}"
# Before somebody is let in libpq gives no code, only the server's words, in the server's language.
_ANSWERED = re.compile(r"failed: [^:\n]+:  ")
"""A severity and two spaces: the server itself has spoken, whatever it said."""
_LOCKED_OUT = re.compile(
    r"FATAL: .*(authentication failed|does not exist|no pg_hba\.conf entry|permi(tted|ssion))"
)
_FOR_NOW = re.compile(r"FATAL: .*(start(ing)? up|shut(ting)? down|recovery|too many|reserved)")


@lru_cache(maxsize=512)
def numbered(sql: str) -> str:
    """Turn ``?`` into ``$1``, ``$2`` …, except inside strings."""
    count = 0

    def mark(match: re.Match[str]) -> str:
        nonlocal count
        if match[0] != "?":
            return match[0]
        count += 1
        return f"${count}"

    return _STRING_OR_MARK.sub(mark, sql)


def outgoing(values: Parameters) -> list[Any]:
    """Values as the server takes them: truth as a number, text without NUL."""
    return [_out(value) for value in values]


def _out(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        raise OverflowError("an integer has 64 bits")
    if isinstance(value, str) and ("\0" in value or _MARK in value):
        return value.replace(_MARK, _MARK + "1").replace("\0", _MARK + "0")
    return value


def incoming(rows: Sequence[Row]) -> list[Row]:
    """Rows as they were written."""
    return [{name: _in(value) for name, value in row.items()} for row in rows]


def _in(value: Any) -> Any:
    if isinstance(value, str) and _MARK in value:
        return value.replace(_MARK + "0", "\0").replace(_MARK + "1", _MARK)
    return value


def meaning_of(error: psycopg.Error, seconds: float | None = None) -> EverContextError:
    """Return the error of our tree that says what PostgreSQL meant; ``seconds`` was the limit."""
    text = " ".join(str(error).split())
    match error:
        case psycopg.errors.QueryCanceled():
            if seconds is not None:
                return took_too_long(seconds)
            return StoreTimeout(f"the query was stopped ({text})", fix="Narrow it")
        case psycopg.errors.DiskFull():
            return DiskFull(f"no space left for the database ({text})", fix="Free some space")
        case psycopg.errors.SerializationFailure() | psycopg.errors.DeadlockDetected():
            return StoreClash(f"another writer came first ({text})", fix="Try again")
        case psycopg.errors.LockNotAvailable():
            return StoreBusy(f"another process holds the database ({text})", fix="Try again")
        case psycopg.errors.InsufficientPrivilege():
            return StoreForbidden(f"this login may not do that ({text})", fix=_MEMBERS_ONLY)
        case psycopg.IntegrityError():
            return StoreConflict(f"the row contradicts another one ({text})")
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return _gone(error, text)
    return StoreProblem(f"the database refused ({text})")


def _gone(error: psycopg.Error, text: str) -> StoreGone:
    """Tell a server that lets nobody in from one that does not answer, in any language."""
    link, answered = error.pgconn, _ANSWERED.search(str(error))
    for_now = _FOR_NOW.search(text)
    # Whoever asks for a password is there: what it then refuses is the password, or what follows.
    password = link and (link.needs_password or (link.used_password and answered))
    if _LOCKED_OUT.search(text) or (password and not for_now):
        return StoreGone(f"the database server lets nobody in ({text})", fix=LOCKED_OUT)
    if answered and not for_now:
        return StoreGone(f"the database server turns us away ({text})", fix=_UNCLEAR)
    return StoreGone(f"the database server does not answer ({text})", fix=_FIX)


@contextmanager
def translated(seconds: float | None = None) -> Iterator[None]:
    """Turn PostgreSQL's errors into ours; ``seconds`` is how long a query inside may take."""
    try:
        yield
    except psycopg.Error as error:
        raise meaning_of(error, seconds) from error
    except (ValueError, OverflowError) as error:
        message = f"the database cannot hold this value ({error})"
        raise StoreProblem(message, fix=UNHOLDABLE) from error
