"""What would be sent to the model for a task, layer by layer; nothing is sent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from evercontext.agent.briefing import brief, part_in
from evercontext.agent.task import new_trace_id
from evercontext.app.calibrations import Calibrations
from evercontext.app.equipment import ESSENTIAL
from evercontext.app.house import EverContext
from evercontext.app.models import describe_model
from evercontext.app.recollection import block
from evercontext.context.token_estimate import PER_REPLY
from evercontext.context.window import Window
from evercontext.domain.message import Message, user
from evercontext.domain.model import ToolSpec
from evercontext.domain.tool import Caller, Door, Mode, Shown
from evercontext.tools.toolbox import Toolbox


@dataclass(frozen=True, slots=True)
class Layer:
    """One part of a request."""

    name: str
    tokens: int
    text: str
    reasons: tuple[dict[str, Any], ...] = ()
    """Why it is there: each memory with its similarity and signals."""


@dataclass(frozen=True, slots=True)
class Preview:
    """A whole request."""

    model: str
    window: int
    reserve: int
    exact: bool
    """Tokens are counted with the model's own vocabulary, not estimated."""
    layers: tuple[Layer, ...] = field(default_factory=tuple)

    @property
    def tokens(self) -> int:
        """Tokens of all layers together."""
        return sum(layer.tokens for layer in self.layers)

    @property
    def over(self) -> int:
        """Tokens that have no room beside the answer; 0 where it fits."""
        return max(0, self.tokens + self.reserve + PER_REPLY - self.window)


async def preview(app: EverContext, task: str, model_name: str | None = None) -> Preview:
    """Put a request together as ``run`` would."""
    caller = Caller(new_trace_id(), Door.RUN, Mode.AGENT, app.principal)
    model = await describe_model(app.settings, model_name)
    try:
        window = await Calibrations(app.store).window(model.info)
        surroundings, toolbox = await app.surroundings(caller), app.toolbox
        memories = Layer("memories", 0, "")
        if model.info.tiny:
            # It is spared what would only confuse it.
            surroundings, toolbox = replace(surroundings, skills=""), toolbox.only(ESSENTIAL)
        else:
            memories = await _memories(app, task, caller, window)
        prompt = brief(surroundings, part_in(Mode.AGENT), Mode.AGENT)
        style: Shown = "native" if model.info.native_tools else "json"
        layers = [
            _layer("system", prompt, window),
            _tools(toolbox, style, window),
            memories,
            _layer("task", user(task), window),
        ]
        shown = tuple(layer for layer in layers if layer.text)
        return Preview(
            model.info.name, window.tokens, window.reserve, window.estimator.exact, shown
        )
    finally:
        await model.aclose()


def _layer(name: str, message: Message, window: Window) -> Layer:
    return Layer(name, window.cost(message), message.content)


def _tools(toolbox: Toolbox, style: Shown, window: Window) -> Layer:
    offered = toolbox.offered(Mode.AGENT, style)
    specs = [ToolSpec(tool.name, tool.description, tool.arguments) for tool in offered]
    tokens = window.room(()) - window.room(specs)
    return Layer("tools", tokens, ", ".join(tool.name for tool in offered))


async def _memories(app: EverContext, task: str, caller: Caller, window: Window) -> Layer:
    found = await app.memory.related(task, caller)
    if not found:
        return Layer("memories", 0, "")
    reasons = tuple(
        {"id": one.id, "similarity": one.similarity, "reasons": dict(one.reasons)} for one in found
    )
    message = user(block(found))
    return Layer("memories", window.cost(message), message.content, reasons)
