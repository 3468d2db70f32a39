from __future__ import annotations

from evercontext.cli.chat.notification import notification


def test_the_bell_everywhere_and_osc_9_where_it_is_shown() -> None:
    """A7: a text can never end the sequence early."""
    assert notification("done: 直して", {}) == "\x07"
    shown = notification("done: a\x07b\nc", {"TERM_PROGRAM": "WezTerm"})
    assert shown == "\x1b]9;done: a\\x07b c\x07"
