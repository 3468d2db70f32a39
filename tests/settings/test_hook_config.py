from __future__ import annotations

from typing import Any

import pytest

from evercontext.settings.hook_config import MOST, Hook, parse_hooks


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "expected events"),
        ("nonsense", "expected JSON"),
        ({"Stop": {}}, "must be a list"),
        ({"Stop": ["x"]}, "not an object"),
        ({"Stop": [{"command": ""}]}, "needs a command"),
        ({"Stop": [{"command": "x" * 5000}]}, "needs a command"),
        ({"Stop": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}, "not a command"),
        ({"PreToolUse": [{"command": "x", "matcher": "(a+)+$"}]}, "may hold names"),
        ({"PreToolUse": [{"command": "x", "matcher": "a" * 300}]}, "may hold names"),
        ({"Stop": [{"command": "x", "timeout": -1}]}, "must be seconds"),
        ({"Stop": [{"command": "x", "timeout": True}]}, "must be seconds"),
        ({"Stop": [{"command": "x"}] * (MOST + 1)}, "at most 50"),
    ],
)
def test_what_makes_no_sense_is_refused_readably(value: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_hooks(value)


def test_both_spellings_mean_the_same() -> None:
    short = {"Stop": [{"matcher": "Write", "command": "x", "timeout": 5}]}
    long = {
        "Stop": [{"matcher": "Write", "hooks": [{"type": "command", "command": "x", "timeout": 5}]}]
    }
    assert parse_hooks(short) == parse_hooks(long) == (Hook("Stop", "x", "Write", 5.0),)
    assert parse_hooks('{"Stop": [{"command": "x"}]}')[0].timeout == 60
    assert parse_hooks({"Stop": [{"command": "x", "timeout": 1e9}]})[0].timeout == 600


@pytest.mark.parametrize(
    ("matcher", "matched"),
    [
        ("", True),
        ("*", True),
        (".*", True),
        ("Write", True),
        ("Edit|Write", True),
        ("write_*", True),
        ("mcp__.*|Wri.*", True),
        ("Wri", False),
        ("write", False),
        ("Edit", False),
    ],
)
def test_matchers(matcher: str, matched: bool) -> None:
    assert Hook("PreToolUse", "x", matcher).matches("write_file", "Write") is matched
