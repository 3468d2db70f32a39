"""How a command fails: one line for a person, one object for a program, one exit code."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from evercontext import errors
from evercontext.domain.outcome import Outcome, outcome_of

SCHEMA_VERSION = 1
_JSON_FORMATS = ("json", "stream-json")


class ReaderLeft(Exception):
    """Nobody reads our output any more, as in ``evercontext trace list | head -1``."""


def report(problem: BaseException, arguments: Sequence[str] = ()) -> int:
    """Say what went wrong and return the exit code."""
    if isinstance(problem, BrokenPipeError | ReaderLeft):
        return _reader_left()
    error = explain(problem)
    outcome = outcome_of(error)
    try:
        _say(error, outcome, arguments)
        _show_origin(problem, arguments)
    except BrokenPipeError:
        _reader_left()
    except OSError:
        # A full disk behind the output: what could be said is said, the exit code says the rest.
        pass
    return int(outcome)


def explain(problem: BaseException) -> errors.EverContextError:
    """Return the problem as one of our own errors."""
    if isinstance(problem, errors.EverContextError):
        return problem
    if isinstance(problem, click.ClickException):
        return _usage(problem)
    if isinstance(problem, KeyboardInterrupt | click.Abort):
        return errors.Cancelled("stopped")
    if isinstance(problem, ImportError) and (missing := errors.missing_library(problem)):
        return missing
    if isinstance(problem, OSError) and problem.strerror:
        place = f": {problem.filename}" if problem.filename else ""
        return errors.IoFailed(f"{problem.strerror}{place}", fix="Set EC_DEBUG=1 to see where")
    description = f"{type(problem).__name__}: {problem}"
    return errors.EverContextError(f"unexpected {description}", fix="Set EC_DEBUG=1 to see where")


def _usage(problem: click.ClickException) -> errors.UsageError:
    ctx = problem.ctx if isinstance(problem, click.UsageError) else None
    see = f"See `{ctx.command_path if ctx else 'evercontext'} --help`"
    if isinstance(problem, click.exceptions.NoArgsIsHelpError):
        group = ctx.command if ctx else None
        known = group.list_commands(ctx) if ctx and isinstance(group, click.Group) else []
        named = f": {', '.join(known)}" if known else ""
        return errors.UsageError(f"a sub-command is missing{named}", fix=see)
    # Click adds its guess to the message; it belongs to the fix.
    message, _, guess = problem.format_message().partition(". ")
    message = message[:1].lower() + message[1:].rstrip(".")
    return errors.UsageError(message, fix=f"{guess} {see}" if guess else see)


def envelope(error: errors.EverContextError, outcome: Outcome) -> dict[str, Any]:
    """The failure of a command that never got to a result of its own."""
    return {
        "type": "result",
        "schema_version": SCHEMA_VERSION,
        "status": "error",
        "is_error": True,
        "outcome": outcome.word,
        "exit_code": int(outcome),
        "error": describe(error),
    }


def describe(error: errors.EverContextError) -> dict[str, Any]:
    """An error as programs read it."""
    return {"code": error.code, "message": error.message, "fix": error.fix}


def wants_json(arguments: Sequence[str]) -> bool:
    """True if the command line asks for JSON, even where it cannot be parsed."""
    before = list(arguments)[: arguments.index("--")] if "--" in arguments else arguments
    words = [part for word in before for part in word.split("=", 1)]
    named = any(a == "--output-format" and b in _JSON_FORMATS for a, b in itertools.pairwise(words))
    return named or "--json" in before


def _say(error: errors.EverContextError, outcome: Outcome, arguments: Sequence[str]) -> None:
    from evercontext.cli.messages import translate, translate_composed
    from evercontext.cli.terminal import Screen, one_line
    from evercontext.events.redaction import redactor as redactor_of

    redactor = redactor_of(None)
    message = translate_composed(one_line(redactor.text(str(error))))
    # Whoever presses Ctrl-C knows why it ended: that is no error, and its ^C is in the way.
    over = "\r\x1b[K" if Screen(sys.stderr).colour else ""
    line = (
        f"{over}{message}"
        if isinstance(error, errors.Cancelled)
        else f"{translate('error')}: {message}"
    )
    # People first: the output of a program may be what failed.
    print(line, file=sys.stderr, flush=True)
    if wants_json(arguments):
        content = redactor.value(envelope(error, outcome))
        print(json.dumps(content, ensure_ascii=False), flush=True)


def _show_origin(problem: BaseException, arguments: Sequence[str]) -> None:
    if isinstance(problem, errors.EverContextError | click.ClickException):
        return
    from evercontext.settings import load_despite_problems

    debug = False
    words = [part for word in arguments for part in word.split("=", 1)]
    root = next((b for a, b in itertools.pairwise(words) if a == "--root"), None)
    with contextlib.suppress(errors.EverContextError):
        debug = load_despite_problems({"root": root})[0].debug
    if debug:
        import traceback

        traceback.print_exception(problem)


def _reader_left() -> int:
    drop_unwritable()
    return int(Outcome.DONE)


def drop_unwritable() -> None:
    """Give up output that cannot be written: no reader, a full disk. It has been told by now.

    Python would try again at exit, complain, and change the exit code to 120.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
