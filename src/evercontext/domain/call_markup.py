"""Read calls in the markup of model families: as their chat templates write them.

Each reader returns names and arguments, the latter as a text that may be JSON or already taken
apart; nothing if the text is not in its markup.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from evercontext.domain import token_markup
from evercontext.domain.search_replace_blocks import read_blocks
from evercontext.domain.token_markup import Written

MARKS = (
    *token_markup.MARKS,
    "<function_calls>",
    "<invoke name=",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<|tool_call|>",
    "```tool_code",
    "*** Begin Patch",
    "<<<<<<< SEARCH",
    "------- SEARCH",
)
_INVOKE = re.compile(r'<invoke name="([^"]+)">(.*?)(?:</invoke>|\Z)', re.DOTALL)
_NAMED = re.compile(r'<parameter name="([^"]+)"[^<>]*>(.*?)</parameter>', re.DOTALL)
_DEEPSEEK = re.compile(
    r"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?([\w.-]+)(?:<｜tool▁sep｜>)?\s*(.*?)"
    r"<｜tool▁call▁end｜>",
    re.DOTALL,
)
_KIMI = re.compile(
    r"<\|tool_call_begin\|>\s*(?:functions\.)?([\w.-]+)(?::\d+)?\s*<\|tool_call_argument_begin\|>"
    r"(.*?)<\|tool_call_end\|>",
    re.DOTALL,
)
_GLM = re.compile(r"<tool_call>\s*([\w.-]+)\s*((?:<arg_key>.*?)?)</tool_call>", re.DOTALL)
_GLM_PAIR = re.compile(r"<arg_key>([^<]*)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_LONGEST_PYTHON = 100_000
_PATH = re.compile(r"[\w./@+-]+\.\w+|[\w./@+-]*/[\w.@+-]+")


def until_last(text: str, closing: str) -> str:
    """Return a text up to its last ``closing``.

    A pattern that looks for the end of each call would look through all the rest for each one
    that has none; a model that repeats itself writes thousands of them.
    """
    return text[: text.rfind(closing) + len(closing)] if closing in text else ""


def _invoked(text: str) -> list[Written]:
    return [
        (name, dict(_NAMED.findall(until_last(body, "</parameter>"))))
        for name, body in _INVOKE.findall(text)
    ]


def _deepseek(text: str) -> list[Written]:
    return _DEEPSEEK.findall(until_last(text, "<｜tool▁call▁end｜>"))


def _kimi(text: str) -> list[Written]:
    calls = _KIMI.findall(until_last(text, "<|tool_call_end|>"))
    return [(name, arguments.strip()) for name, arguments in calls]


def _glm(text: str) -> list[Written]:
    return [
        (name, dict(_GLM_PAIR.findall(until_last(body, "</arg_value>"))))
        for name, body in _GLM.findall(until_last(text, "</tool_call>"))
    ]


def _tool_code(text: str) -> list[Written]:
    body = _inside(text, "```tool_code", "```")
    return python_calls(body) if body else []


def _patched(text: str) -> list[Written]:
    body = _inside(text, "*** Begin Patch\n", "\n*** End Patch")
    return [("apply_patch", {"input": f"*** Begin Patch\n{body}\n*** End Patch"})] if body else []


def _inside(text: str, opening: str, closing: str) -> str:
    """Return what stands between the first opening and its end; nothing if one is missing."""
    start = text.find(opening)
    end = text.find(closing, start + len(opening)) if start >= 0 else -1
    return text[start + len(opening) : end] if end >= 0 else ""


READERS: tuple[Callable[[str], list[Written]], ...] = (
    *token_markup.READERS,
    _invoked,
    _deepseek,
    _kimi,
    _glm,
    _tool_code,
    _patched,
)


def python_calls(text: str) -> list[Written]:
    """Return calls written in Python, such as ``[readFile(path="a.py")]``; only of constants."""
    if len(text) > _LONGEST_PYTHON:
        return []
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    nodes = tree.elts if isinstance(tree, ast.List) else [tree]
    calls = [_python_call(node) for node in nodes]
    return [call for call in calls if call] if all(calls) else []


def _python_call(node: ast.expr) -> Written | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
        node = node.args[0] if len(node.args) == 1 else node
    if not isinstance(node, ast.Call) or node.args:
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "call":
        # Llama's tag for its built-in tools: readFile.call(path="a.py").
        node.func = node.func.value
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    name = node.func.id if isinstance(node.func, ast.Name) else name
    try:
        arguments = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords if k.arg}
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
    return (name, arguments) if name and len(arguments) == len(node.keywords) else None


def edit_blocks(before: str, text: str) -> list[tuple[str, str]]:
    """Return paths and SEARCH/REPLACE blocks.

    The path stands on the line before a block or before its fence; ``before`` is what was already
    said. Nothing if a block is broken or no path stands there.
    """
    lines = f"{before}{text}".split("\n")
    edits: list[tuple[str, str]] = []
    end = 0
    for block in read_blocks(lines):
        path = _path_above(lines, end, block.first) or (edits[-1][0] if edits else "")
        if not path:
            return []
        edits.append((path, block.text))
        end = block.last + 1
    return edits


def _path_above(lines: Sequence[str], first: int, number: int) -> str:
    """Return the path that the last line above one holds; fences and blank lines may follow it."""
    for line in reversed(lines[first:number]):
        if line.strip() and not line.startswith(("```", "~~~")):
            name = line.strip().strip("`*#: ")
            return name if _PATH.fullmatch(name) else ""
    return ""
