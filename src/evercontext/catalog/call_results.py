"""What a tool of a server answered: its content blocks as they are, bounded, and text for a model.

A block is never rebuilt: images, audio, links and embedded resources reach whoever called as the
server wrote them. Only what is longer than a model reads is cut, and the answer says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evercontext.domain.tool import ToolResult
from evercontext.errors import EverContextError, ToolProblem
from evercontext.mcp.messages import Result
from evercontext.tools.truncate import truncate

LONGEST_TEXT = 200_000
"""Characters of text, and of structured content, that one answer may have."""
_LONGEST_REASON = 2_000


def asks_for_input(answer: Mapping[str, Any]) -> bool:
    """Tell whether an answer of the stateless revision is a question back."""
    return answer.get("resultType") == "input_required"


def as_tool_result(result: Result) -> ToolResult:
    """Return a server's answer; an error it reports is an error of the call."""
    answer, raw = bound(result)
    text = model_text(answer)
    error: EverContextError | None = None
    if answer.get("isError") is True:
        error = ToolProblem(text[:_LONGEST_REASON] or "the tool failed and did not say why")
    return ToolResult(text=text, data=answer, error=error, raw=raw)


def model_text(answer: Mapping[str, Any]) -> str:
    """Return the text of an answer as the tool gave it; what is no text is named in brackets."""
    blocks = _blocks(answer)
    if not blocks and "structuredContent" in answer:
        return _write(answer["structuredContent"])
    return "\n".join(_block_text(block) for block in blocks)


def bound(result: Result) -> tuple[dict[str, Any], str]:
    """Return an answer within its bounds, as a value and as JSON: untouched if it fits."""
    answer: dict[str, Any] = result.value
    if len(result.raw) <= LONGEST_TEXT:
        return answer, result.raw
    content, is_cut = _bound_blocks(answer.get("content"))
    structured = answer.get("structuredContent")
    size = 0 if structured is None else len(_write(structured))
    if size > LONGEST_TEXT:
        answer = {key: value for key, value in answer.items() if key != "structuredContent"}
        note = f"[structured content left out: {size} characters, at most {LONGEST_TEXT} pass]"
        content, is_cut = [*content, {"type": "text", "text": note}], True
    if not is_cut:
        return answer, result.raw
    answer = {**answer, "content": content}
    return answer, _write(answer)


def without_second_copy(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an answer without structured content that only repeats its text.

    Some clients show a model the one, some the other, some both: what says the same is sent once.
    """
    structured = answer.get("structuredContent")
    blocks = _blocks(answer)
    if structured is None or not all(block.get("type") == "text" for block in blocks) or not blocks:
        return answer
    texts = [block.get("text") for block in blocks]
    plain = structured.get("result") if isinstance(structured, dict) else None
    is_wrapped = isinstance(structured, dict) and set(structured) == {"result"}
    values = [_parsed(text) for text in texts]
    repeats = (len(texts) == 1 and values[0] == structured) or (
        is_wrapped and plain in (texts, values, texts[0] if len(texts) == 1 else texts, values[0])
    )
    if not repeats:
        return answer
    return {key: value for key, value in answer.items() if key != "structuredContent"}


def _blocks(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = answer.get("content")
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def _block_text(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    if isinstance(block.get("text"), str):
        return str(block["text"])
    if kind == "resource_link":
        named = " ".join(str(block[key]) for key in ("name", "uri") if block.get(key))
        return f"[link: {named}]"
    resource = block.get("resource")
    if isinstance(resource, Mapping):
        if isinstance(resource.get("text"), str):
            return str(resource["text"])
        return f"[resource: {resource.get('uri')} {_size_of(resource, 'blob')}]"
    return f"[{kind}: {_size_of(block, 'data')}]"


def _size_of(block: Mapping[str, Any], field: str) -> str:
    encoded = block.get(field)
    size = len(encoded) * 3 // 4 if isinstance(encoded, str) else 0
    return f"{block.get('mimeType') or 'unknown type'}, {size} bytes"


def _bound_blocks(content: Any) -> tuple[list[Any], bool]:
    """Cut the texts of blocks once all of them together are too long; other blocks stay."""
    blocks, is_cut, left = [], False, LONGEST_TEXT
    for block in content if isinstance(content, list) else []:
        holder = block.get("resource") if isinstance(block, dict) else None
        inside = holder if isinstance(holder, dict) else block
        text = inside.get("text") if isinstance(inside, dict) else None
        if isinstance(text, str):
            shorter, shortened = truncate(text, max(left, 0))
            left -= len(text)
            if shortened:
                is_cut, inside = True, {**inside, "text": shorter}
                block = {**block, "resource": inside} if isinstance(holder, dict) else inside
        blocks.append(block)
    return blocks, is_cut


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def _write(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
