"""Read calls in the special tokens of newer model families, where a server passes them on as text.

``benchmarks/recorded_shapes.py`` names the public fixture of each shape. Every pattern ends at a
closing token or at the end of the text, so that a model that repeats itself costs no more than its
length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from evercontext.domain.lenient_json import NotJson, decode_at

Written = tuple[str, str | Mapping[str, Any]]
"""A name, and arguments as they were written."""

MARKS = (
    *("<｜DSML｜", "<｜｜DSML｜｜", "<|DSML|", "<minimax:tool_call>", "<seed:tool_call>"),
    *("<|channel|>commentary to=", "<|start|>assistant<|channel|>commentary to="),
    *("<|start|>assistant to=", "<|tool_call>call:", "<start_function_call>call:"),
    *("functools[", "<tool_calls>", "<|START_ACTION|>"),
)
_DSML = re.compile(r"<(/?)[｜|]{1,2}DSML[｜|]{1,2} ?")
_INVOKE = re.compile(r'<invoke name="([^"<>]+)">([^<]*)</invoke>')
_HARMONY = re.compile(
    r"to=(?:functions\.)?([\w.-]+)\s*(?:<\|channel\|>commentary)?\s*(?:<\|constrain\|>)?(?:json)?\s*"
    r"<\|message\|>((?:(?!<\|)[\s\S])*)"
)
_MISTRAL = re.compile(
    r"\[TOOL_CALLS\]\s*([A-Za-z_][\w.-]*)(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(?=\{)"
)
_LLAMA = re.compile(r"<function=([\w.-]+)\s*\(?(?=\{)")
_GEMMA = re.compile(r"(?:<\|tool_call>|<start_function_call>)call:([\w.-]+)(?=\{)")
_GEMMA_TEXT = re.compile(r'<\|"\|>|<escape>')
_BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_]\w*)\s*:")
_LISTS = (("functools[", "]"), ("<tool_calls>", "</tool_calls>"), ("<|START_ACTION|>", "<|END_"))


def without_dsml(text: str) -> str:
    """Return DeepSeek's DSML as the plain tags that it stands for."""
    return _DSML.sub(r"<\1", text) if "DSML" in text else text


def _direct(text: str) -> list[Written]:
    """DeepSeek's second form: an object where the parameters would stand."""
    bodies = [(name, body.strip()) for name, body in _INVOKE.findall(text)]
    return [*bodies] if bodies and all(body.startswith("{") for _, body in bodies) else []


def _harmony(text: str) -> list[Written]:
    return [(name, body.strip()) for name, body in _HARMONY.findall(text)]


def _mistral(text: str) -> list[Written]:
    return _followed_by_objects(_MISTRAL, text)


def _llama(text: str) -> list[Written]:
    return _followed_by_objects(_LLAMA, text)


def _followed_by_objects(pattern: re.Pattern[str], text: str) -> list[Written]:
    """Return the calls of which each is a name and, right after it, one JSON object."""
    calls: list[Written] = []
    at = 0
    while match := pattern.search(text, at):
        try:
            value, at = decode_at(text, match.end())
        except NotJson:
            return []
        if not isinstance(value, dict):
            return []
        calls.append((match[1], value))
    return calls


def _gemma(text: str) -> list[Written]:
    """Gemma writes keys without quotes, and texts between two tokens of their own."""
    calls: list[Written] = []
    for match in _GEMMA.finditer(text):
        closing = "<tool_call|>" if match[0].startswith("<|") else "<end_function_call>"
        end = text.find(closing, match.end())
        if end < 0:
            return []
        parts = _GEMMA_TEXT.split(text[match.end() : end])
        plain = [_BARE_KEY.sub(r'\1"\2":', part) for part in parts[::2]]
        texts = [json.dumps(part) for part in parts[1::2]]
        joined = "".join(piece for pair in zip(plain, [*texts, ""], strict=False) for piece in pair)
        try:
            value, _ = json.JSONDecoder().raw_decode(joined)
        except ValueError:
            return []
        calls.append((match[1], value))
    return calls


def _listed(text: str) -> list[Written]:
    """A list of objects between two marks, as Phi, Jamba, Hunyuan and Command write it."""
    for opening, closing in _LISTS:
        start = text.find(opening)
        if start < 0:
            continue
        begin = start + len(opening) - (1 if opening.endswith("[") else 0)
        end = text.rfind(closing)
        body = text[begin : end + (1 if closing == "]" else 0)] if end > begin else text[begin:]
        try:
            values = json.loads(body)
        except ValueError:
            return []
        calls = [_named(value) for value in values] if isinstance(values, list) else []
        return [call for call in calls if call] if all(calls) else []
    return []


def _named(value: Any) -> Written | None:
    if not isinstance(value, dict):
        return None
    name = value.get("name", value.get("tool_name"))
    arguments = value.get("arguments", value.get("parameters"))
    return (name, arguments) if isinstance(name, str) and isinstance(arguments, dict) else None


READERS: tuple[Callable[[str], list[Written]], ...] = (
    *(_direct, _harmony, _mistral, _llama, _gemma, _listed),
)
