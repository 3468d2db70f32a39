"""Write docs/reference/events.md from the event bodies themselves.

With `--check` nothing is written: the page must be up to date.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import sys
from pathlib import Path

from evercontext.domain.event import BODIES, SCHEMA, Body, Unknown

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "events.md"
INTRODUCTION = f"""\
# Events

<!-- Made by scripts/events.py; do not edit. -->

The log is JSON Lines under `traces/` in the home folder: one file per process and day, and
another when it is full; append-only, secrets removed before writing. The oldest files go when there
are more than 1 GB (`EC_TRACES_MB`), or files of more than 60 days with traces (`EC_TRACES_DAYS`);
0 keeps all. A jump of the clock drops nothing. Where a server writes a file, the content is in
the `diff` alone. Each line is one object:

| Key | Meaning |
|---|---|
| `id` | unique; sorts by time |
| `at` | ISO 8601, UTC, microseconds |
| `trace_id` | the UUID of the task that this belongs to |
| `parent` | the id of the event that this is part of, or null |
| `v` | version of the schema, now {SCHEMA} |
| `type` | one of the types below |
| `data` | the fields of that type |

A task reads `task` → `plan` → `step` → `tool_result` → `diff` → `final`. A reader must ignore types
and fields it does not know. [Decision 3](../adr/0003-event-log.md) says why the log is the only
truth of what happened.
"""


def section(kind: type[Body]) -> str:
    """One type: its meaning and its fields."""
    lines = [f"## `{kind.type}`", "", inspect.cleandoc(kind.__doc__ or ""), ""]
    if kind.transient:
        lines += ["Published to live views and never written.", ""]
    lines += ["| Field | Type | Default |", "|---|---|---|"]
    lines += [
        f"| `{f.name}` | `{_type_of(f)}` | {_default_of(f)} |" for f in dataclasses.fields(kind)
    ]
    return "\n".join(lines) + "\n"


def _type_of(field: dataclasses.Field[object]) -> str:
    return str(field.type).replace("|", "\\|")


def _default_of(field: dataclasses.Field[object]) -> str:
    if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
        return "required"
    made = field.default_factory() if callable(field.default_factory) else field.default
    return f"`{made!r}`"


def page() -> str:
    """The whole page."""
    kinds = [kind for kind in BODIES.values() if kind is not Unknown]
    return "\n".join([INTRODUCTION, *map(section, kinds)])


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description="The reference of the event log.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if out of date")
    fresh = page()
    if not parser.parse_args().check:
        PAGE.write_text(fresh, encoding="utf-8")
    elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != fresh:
        print("docs/reference/events.md is out of date; run: python scripts/events.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
