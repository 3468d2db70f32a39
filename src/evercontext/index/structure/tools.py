"""Define the tools that answer questions about the structure of the project's code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from evercontext.domain.tool import Arguments, Caller, Effect, Tool, ToolResult

if TYPE_CHECKING:
    from evercontext.index.code_search import CodeIndex

OpenIndex = Callable[[Caller], Awaitable["CodeIndex"]]
_QUESTIONS = (
    "definition",
    "references",
    "callers",
    "callees",
    "importers",
    "implementations",
)
_LIMIT, _MOST = 50, 1_000
_BUDGET, _MOST_TOKENS = 2_000, 100_000


def _schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


_FIND = _schema(
    {
        "question": {"enum": list(_QUESTIONS)},
        "name": {
            "type": "string",
            "minLength": 1,
            "maxLength": 500,
            "description": "A name such as Cart, or Cart.add for a member. For importers also a "
            "file (shop/cart.py) or module (shop.cart)",
        },
        "path": {
            "type": "string",
            "maxLength": 4096,
            "description": "File or folder of the definition, where several have the name",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": _MOST, "default": _LIMIT},
    },
    ["question", "name"],
)
_PATH = _schema({"path": {"type": "string", "minLength": 1, "maxLength": 4096}}, ["path"])
_MAP = _schema(
    {
        "budget": {
            "type": "integer",
            "minimum": 50,
            "maximum": _MOST_TOKENS,
            "default": _BUDGET,
            "description": "Tokens that the map may take",
        },
        "path_prefix": {"type": "string", "maxLength": 4096},
    },
    [],
)


def structure_tools(open_index: OpenIndex, count_tokens: Callable[[str], int]) -> list[Tool]:
    """Return the tools over an index that is opened when it is first needed."""
    tools = _StructureTools(open_index, count_tokens)
    return [
        Tool(
            "find_symbol",
            "Where a name is defined, who refers to it, calls it, imports it or implements it, and "
            "what it calls. Each line says how sure it is; [name] means that only the name fits. "
            "Python, TypeScript, JavaScript, Go, Rust, Java.",
            _FIND,
            Effect.READ,
            tools.find,
            aliases=("findSymbol",),
        ),
        Tool(
            "outline_file",
            "List the classes, functions and values that a source file defines, with lines and "
            "signatures: far shorter than reading it.",
            _PATH,
            Effect.READ,
            tools.outline,
            aliases=("outlineFile",),
        ),
        Tool(
            "map_code",
            "Show the most used definitions of the project by file, within a number of tokens: a "
            "first look at code you do not know.",
            _MAP,
            Effect.READ,
            tools.map,
            aliases=("mapCode",),
        ),
    ]


class _StructureTools:
    def __init__(self, open_index: OpenIndex, count_tokens: Callable[[str], int]) -> None:
        self._open = open_index
        self._count = count_tokens

    async def find(self, arguments: Arguments, caller: Caller) -> ToolResult:
        """Answer a question about a name."""
        from evercontext.index.structure.service import ask_structure
        from evercontext.index.structure.text import answer_text

        answer = await ask_structure(
            await self._open(caller),
            arguments["question"],
            arguments["name"],
            arguments.get("path"),
            limit=arguments.get("limit", _LIMIT),
        )
        return ToolResult(answer_text(answer), answer.as_data(), hits=answer.total)

    async def outline(self, arguments: Arguments, caller: Caller) -> ToolResult:
        """List what a file defines."""
        from evercontext.index.structure.questions import symbol_data
        from evercontext.index.structure.service import outline_file
        from evercontext.index.structure.text import outline_text

        symbols = await outline_file(await self._open(caller), arguments["path"])
        data = {"path": arguments["path"], "symbols": [symbol_data(s) for s in symbols]}
        return ToolResult(outline_text(symbols), data, hits=len(symbols))

    async def map(self, arguments: Arguments, caller: Caller) -> ToolResult:
        """Draw a map of the project."""
        from evercontext.index.structure.service import map_repository

        drawn = await map_repository(
            await self._open(caller),
            self._count,
            arguments.get("budget", _BUDGET),
            arguments.get("path_prefix", ""),
        )
        data = asdict(drawn)
        del data["lines"]
        text = "\n".join(part for part in (drawn.text, drawn.note) if part)
        return ToolResult(text or "Nothing to show.", data, hits=drawn.symbols)
