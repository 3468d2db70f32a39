"""Keep the model's to-do list, which the user sees."""

from __future__ import annotations

from evercontext.domain.tool import Arguments, Caller, Effect, Tool, ToolResult
from evercontext.errors import InvalidArguments

NAME = "update_todos"
MARKS = {"pending": " ", "in_progress": ">", "done": "x"}
_MOST = 50
_SCHEMA = {
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "maxItems": _MOST,
            "description": "The whole list, in order, each time.",
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "minLength": 1, "description": "What is to do."},
                    "status": {"type": "string", "enum": list(MARKS)},
                },
                "required": ["text", "status"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["todos"],
    "additionalProperties": False,
}


def todo_tool() -> Tool:
    """The tool; the list itself lives in the conversation, where the call stays."""

    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        todos = arguments["todos"]
        if sum(todo["status"] == "in_progress" for todo in todos) > 1:
            raise InvalidArguments("more than one is in progress", fix="Do one after the other")
        done = sum(todo["status"] == "done" for todo in todos)
        return ToolResult(f"noted: {done} of {len(todos)} done", {"todos": todos})

    return Tool(
        name=NAME,
        description=(
            "Keep a list of the steps of a task with several of them. Give the whole list every "
            "time: when it is made, and whenever a step begins or is done."
        ),
        arguments=_SCHEMA,
        # It changes nothing but what the user sees: plan mode may have a list too.
        effects=Effect.READ,
        run=run,
    )


def lines(arguments: Arguments) -> list[str]:
    """The list as a person reads it."""
    todos = arguments.get("todos")
    return [
        f"[{MARKS.get(str(todo.get('status')), '?')}] {todo.get('text', '')}"
        for todo in (todos if isinstance(todos, list | tuple) else ())
        if isinstance(todo, dict)
    ]
