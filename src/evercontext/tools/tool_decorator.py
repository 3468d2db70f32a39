"""Turn a typed async function into a ``Tool`` (``@tool``)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

from evercontext.domain.tool import Arguments, Caller, Effect, Preview, Shown, Tool, ToolResult
from evercontext.errors import InvalidArguments

Function = Callable[..., Awaitable[ToolResult]]


def tool(
    effects: Effect,
    *,
    name: str | None = None,
    aliases: tuple[str, ...] = (),
    preview: Preview | None = None,
    timeout: float = 60.0,
    shown_to: Shown = "any",
) -> Callable[[Function], Tool]:
    """Make a tool of a function whose parameters are annotated; ``caller`` is passed if named.

    The docstring is the description; ``Annotated[str, Field(description=…)]`` describes a
    parameter.
    """

    def make(function: Function) -> Tool:
        model = _arguments_model(function)
        wants_caller = "caller" in inspect.signature(function).parameters

        def check(arguments: Arguments) -> Arguments:
            return _validated(model, arguments)

        async def run(arguments: Arguments, caller: Caller) -> ToolResult:
            extra = {"caller": caller} if wants_caller else {}
            return await function(**arguments, **extra)

        return Tool(
            name=name or function.__name__,
            description=inspect.cleandoc(function.__doc__ or ""),
            arguments=_schema(model),
            effects=effects,
            run=run,
            aliases=aliases,
            check=check,
            preview=preview,
            timeout=timeout,
            shown_to=shown_to,
        )

    return make


def _arguments_model(function: Function) -> Any:
    from pydantic import ConfigDict, create_model

    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "caller":
            continue
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    return create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **fields)


def _schema(model: Any) -> dict[str, Any]:
    schema: dict[str, Any] = model.model_json_schema()
    # Titles repeat the parameter names and cost tokens in every request.
    schema.pop("title", None)
    for described in schema.get("properties", {}).values():
        described.pop("title", None)
    return schema


def _validated(model: Any, arguments: Arguments) -> dict[str, Any]:
    from pydantic import ValidationError

    try:
        parsed = model.model_validate(dict(arguments))
    except ValidationError as problem:
        raise InvalidArguments(_one_line(problem.errors(include_url=False))) from None
    return {name: getattr(parsed, name) for name in type(parsed).model_fields}


def _one_line(problems: list[Any]) -> str:
    messages = [f"{'.'.join(map(str, p['loc'])) or 'arguments'}: {p['msg']}" for p in problems[:5]]
    return "; ".join(messages)
