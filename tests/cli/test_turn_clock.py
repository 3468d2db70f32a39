from __future__ import annotations

from evercontext.cli.turn_clock import TurnClock


def test_seconds_and_tokens_of_a_turn() -> None:
    """A1: what is shown while an answer comes in."""
    now = [0.0]
    clock = TurnClock(lambda: now[0])
    assert clock.parts() == []
    clock.start()
    assert clock.parts() == ["0 s"]
    clock.count("abcd" * 10 + "日本")
    now[0] = 75.0
    assert clock.parts() == ["1 min 15 s", "~12 tokens"]
    clock.stop()
    assert clock.parts() == []
