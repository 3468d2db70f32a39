"""Preview the first request of a task, layer by layer, without sending it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from evercontext.agent.open_project import ESSENTIAL_TOOLS, OpenProject
from evercontext.agent.system_prompt import brief, part_in
from evercontext.agent.task import new_trace_id
from evercontext.context.conversation_window import Window
from evercontext.context.memory_service import block
from evercontext.context.token_calibration import Calibrations
from evercontext.context.token_estimate import PER_REPLY
from evercontext.domain.message import Message, user
from evercontext.domain.model import ModelInfo, ToolSpec
from evercontext.domain.tool import Caller, Door, Mode, Shown
from evercontext.tools.toolbox import Toolbox


@dataclass(frozen=True, slots=True)
class PreviewLayer:
    """One part of a request."""

    name: str
    tokens: int
    text: str
    reasons: tuple[dict[str, Any], ...] = ()
    """The memories in it, each with its similarity and signals."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The layers of one request."""

    model: str
    window: int
    reserve: int
    exact: bool
    """Tokens are counted with the model's own vocabulary, not estimated."""
    layers: tuple[PreviewLayer, ...] = field(default_factory=tuple)

    @property
    def tokens(self) -> int:
        """Return the tokens of all layers together."""
        return sum(layer.tokens for layer in self.layers)

    @property
    def over(self) -> int:
        """Return how many tokens too many the request has; 0 if it fits."""
        return max(0, self.tokens + self.reserve + PER_REPLY - self.window)


async def preview(project: OpenProject, task: str, model: ModelInfo) -> Preview:
    """Assemble the first request of a task as ``run`` would."""
    caller = Caller(new_trace_id(), Door.RUN, Mode.AGENT, project.principal)
    window = await Calibrations(project.store).window(model)
    surroundings, toolbox = await project.surroundings(caller), project.toolbox
    memories = PreviewLayer("memories", 0, "")
    if model.tiny:
        # Skills and many tools would only confuse it.
        surroundings, toolbox = replace(surroundings, skills=""), toolbox.only(ESSENTIAL_TOOLS)
    else:
        memories = await _memories(project, task, caller, window)
    prompt = brief(surroundings, part_in(Mode.AGENT), Mode.AGENT)
    style: Shown = "native" if model.native_tools else "json"
    layers = [
        _layer("system", prompt, window),
        _tools(toolbox, style, window),
        memories,
        _layer("task", user(task), window),
    ]
    shown = tuple(layer for layer in layers if layer.text)
    return Preview(model.name, window.tokens, window.reserve, window.estimator.exact, shown)


def _layer(name: str, message: Message, window: Window) -> PreviewLayer:
    return PreviewLayer(name, window.cost(message), message.content)


def _tools(toolbox: Toolbox, style: Shown, window: Window) -> PreviewLayer:
    offered = toolbox.offered(Mode.AGENT, style)
    specs = [ToolSpec(tool.name, tool.description, tool.arguments) for tool in offered]
    tokens = window.room(()) - window.room(specs)
    return PreviewLayer("tools", tokens, ", ".join(tool.name for tool in offered))


async def _memories(
    project: OpenProject, task: str, caller: Caller, window: Window
) -> PreviewLayer:
    memories = await project.memory.related(task, caller)
    if not memories:
        return PreviewLayer("memories", 0, "")
    reasons = tuple(
        {"id": memory.id, "similarity": memory.similarity, "reasons": dict(memory.reasons)}
        for memory in memories
    )
    message = user(block(memories))
    return PreviewLayer("memories", window.cost(message), message.content, reasons)
