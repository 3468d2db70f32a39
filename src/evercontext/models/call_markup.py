"""Read calls in the markup of model families: as their chat templates write them.

Each reader returns names and arguments, the latter as a text that may be JSON or already taken
apart; nothing if the text is not in its markup.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from evercontext.models import token_markup
from evercontext.models.token_markup import Written

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
_NAMED = re.compile(r'<parameter name="([^"]+)"[^>]*>(.*?)</parameter>', re.DOTALL)
_DEEPSEEK = re.compile(
    r"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?([\w.-]+)(?:<｜tool▁sep｜>)?\s*(.*?)"
    r"<｜tool▁call▁end｜>",
    re.DOTALL,
)
_KIMI = re.compile(
    r"<\|tool_call_begin\|>\s*(?:functions\.)?([\w.-]+?)(?::\d+)?\s*<\|tool_call_argument_begin\|>"
    r"\s*(.*?)\s*<\|tool_call_end\|>",
    re.DOTALL,
)
_GLM = re.compile(r"<tool_call>\s*([\w.-]+)\s*((?:<arg_key>.*?)?)</tool_call>", re.DOTALL)
_GLM_PAIR = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_TOOL_CODE = re.compile(r"```tool_code\s*\n(.*?)\n\s*```", re.DOTALL)
_PATCH = re.compile(r"\*\*\* Begin Patch\n.*?\n\*\*\* End Patch", re.DOTALL)
_BLOCK = re.compile(
    r"(?:^[`~]{3,}[\w+-]*\n)?^(?:<{7}|-{7}) SEARCH>?\n.*?^={7}\n.*?^(?:>{7}|\+{7}) REPLACE",
    re.DOTALL | re.MULTILINE,
)
_PATH = re.compile(r"[\w./@+-]+\.\w+|[\w./@+-]*/[\w.@+-]+")


def _invoked(text: str) -> list[Written]:
    return [(name, dict(_NAMED.findall(body))) for name, body in _INVOKE.findall(text)]


def _deepseek(text: str) -> list[Written]:
    return _DEEPSEEK.findall(text)


def _kimi(text: str) -> list[Written]:
    return _KIMI.findall(text)


def _glm(text: str) -> list[Written]:
    return [(name, dict(_GLM_PAIR.findall(body))) for name, body in _GLM.findall(text)]


def _tool_code(text: str) -> list[Written]:
    match = _TOOL_CODE.search(text)
    return python_calls(match[1]) if match else []


def _patched(text: str) -> list[Written]:
    match = _PATCH.search(text)
    return [("apply_patch", {"input": match[0]})] if match else []


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
    """Return paths and SEARCH/REPLACE blocks, as aider and Cline have models write them.

    The path stands on the line before a block or before its fence; ``before`` is what was already
    said. Nothing if a block is broken or no path stands there.
    """
    full_text = f"{before}{text}"
    blocks = list(_BLOCK.finditer(full_text))
    if len(blocks) != len(re.findall(r"^(?:<{7}|-{7}) SEARCH", full_text, re.MULTILINE)):
        return []
    edits: list[tuple[str, str]] = []
    for block in blocks:
        path = _path_before(full_text[: block.start()]) or (edits[-1][0] if edits else "")
        if not path:
            return []
        body = re.sub(r"\A[`~]{3,}[\w+-]*\n", "", block[0])
        edits.append((path, _as_aider(body)))
    return edits


def _as_aider(block: str) -> str:
    block = re.sub(r"^-{7} SEARCH>?$", "<<<<<<< SEARCH", block, flags=re.MULTILINE)
    return re.sub(r"^\+{7} REPLACE$", ">>>>>>> REPLACE", block, flags=re.MULTILINE)


def _path_before(text: str) -> str:
    for line in reversed(text.rstrip("\n").split("\n")[-2:]):
        if line.startswith(("```", "~~~")):
            continue
        name = line.strip().strip("`*#: ")
        return name if _PATH.fullmatch(name) else ""
    return ""
