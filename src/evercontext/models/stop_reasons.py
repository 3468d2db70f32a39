"""Translate the stop reasons of every vendor."""

from __future__ import annotations

from evercontext.domain.model import StopReason

_WORDS: dict[StopReason, str] = {
    "end": "stop end_turn stop_sequence eos pause_turn load unload",
    "tool_calls": "tool_calls function_call tool_use",
    "length": """length max_tokens max_output_tokens model_length limit
                 model_context_window_exceeded""",
    "filtered": """content_filter refusal safety recitation blocklist prohibited_content spii
                   sensitive guardrail_intervened""",
}
_BY_WORD: dict[str, StopReason] = {
    word: reason for reason, words in _WORDS.items() for word in words.split()
}
_BROKEN = frozenset(("error", "abort", "cancelled", "insufficient_system_resource"))


def stop_reason(word: str | None) -> StopReason:
    """Return the reason that a vendor's word stands for; a word nobody knows is an end."""
    return _BY_WORD.get((word or "").lower(), "end")


def broke_off(word: str | None) -> bool:
    """Tell whether a word says that the server gave up in the middle of its answer."""
    return (word or "").lower() in _BROKEN
