"""Translate a text search into the query language of each database.

Words are only ever values: there is no query language that a quote or a bracket could break.
Trigrams find three letters and more; shorter words are looked for one message at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

INDEXED = 3
"""Letters that SQLite's index can find."""
CATCH_UP = """
    INSERT INTO message_words (rowid, content)
    SELECT id, content FROM messages
    WHERE id > (SELECT coalesce(max(rowid), 0) FROM message_words)
"""
_INDEX = "m.id IN (SELECT rowid FROM message_words WHERE message_words MATCH ?)"
_ONE_BY_ONE = "m.content LIKE ? ESCAPE '!'"
_ANY_CASE = "m.content ILIKE ? ESCAPE '!'"


def for_sqlite(words: Sequence[str]) -> tuple[str, list[str]]:
    """The index for long words, a look at the text for short ones."""
    conditions, values = [], []
    if long := [word for word in words if len(word) >= INDEXED]:
        conditions.append(_INDEX)
        values.append(" ".join(f'"{word.replace(chr(34), chr(34) * 2)}"' for word in long))
    short = [word for word in words if len(word) < INDEXED]
    conditions += [_ONE_BY_ONE] * len(short)
    return " AND ".join(conditions), values + [f"%{_escaped(word)}%" for word in short]


def for_postgres(words: Sequence[str]) -> tuple[str, list[str]]:
    """A look at the text for every word, whatever its case."""
    return " AND ".join([_ANY_CASE] * len(words)), [f"%{_escaped(word)}%" for word in words]


def _escaped(word: str) -> str:
    return "".join(f"!{letter}" if letter in "!%_" else letter for letter in word)
