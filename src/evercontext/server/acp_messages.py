"""What an editor is sent and sends: events as its updates, its servers and prompts as ours."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from acp import helpers, schema

from evercontext.agent import todo
from evercontext.catalog.server_table import ServerConfig, read_config
from evercontext.domain.caller_scope import OURS
from evercontext.domain.event import Event, Step, StepResult, TextPiece
from evercontext.domain.tool import Arguments, Mode, Tool
from evercontext.domain.visible_text import exact
from evercontext.errors import ConfigError
from evercontext.tools.approval_gate import ApprovalQuestion
from evercontext.tools.approval_text import consent_of
from evercontext.tools.truncate import bounded

MODES = {Mode.AGENT: "Changes files, and asks first", Mode.PLAN: "Reads and plans"}
_LONGEST = 8_000
_KINDS = (("execute", "execute"), ("write", "edit"), ("network", "fetch"), ("read", "read"))
"""What an editor calls a call; one that was refused has no effect and is never called reading."""
_STATES = {"pending": "pending", "in_progress": "in_progress", "done": "completed"}
_PATHS = ("path", "file", "directory", "from", "to")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


class ToolCallUpdates:
    """The calls of one session as its editor knows them, each under one id from first to last."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._pending_calls: list[tuple[str, Any, str]] = []
        self._ids: dict[str, str] = {}

    def announce(self, question: ApprovalQuestion) -> schema.ToolCallStart:
        """Return the beginning of a call that somebody is asked about before it runs."""
        tool, arguments = question.tool, question.arguments
        id = f"call-{uuid.uuid4().hex}"
        self._pending_calls.append((tool.name, bounded(arguments), id))
        effects = [effect.name.lower() for effect in tool.effects if effect.name]
        return self._start(id, tool.name, arguments, effects, "pending")

    def forget_questions(self) -> None:
        """Forget what was asked and never ran, as when the turn was cancelled."""
        self._pending_calls.clear()

    def update(self, event: Event) -> Any:
        """Return an event as the editor is told of it, or ``None``."""
        match event.body:
            case TextPiece(text=text, thought=True):
                return helpers.update_agent_thought_text(text)
            case TextPiece(text=text):
                return helpers.update_agent_message_text(text)
            case Step(tool=todo.NAME, effects=()):
                # Refused: what it holds is whatever the model wrote, and no list.
                return None
            case Step(tool=todo.NAME, arguments=arguments):
                return helpers.update_plan(
                    helpers.plan_entry(item["text"], status=_STATES[item["status"]])  # type: ignore[arg-type]
                    for item in arguments["todos"]
                )
            case Step() as step:
                id = self._asked_id(step)
                if id is None:
                    name = f"{step.tool} (before the change)" if step.state else step.tool
                    return self._start(event.id, name, step.arguments, step.effects, "in_progress")
                self._ids[event.id] = id
                # What was refused has no effects, and never runs.
                return helpers.update_tool_call(id, status="in_progress") if step.effects else None
            case StepResult(tool=tool) as result if tool != todo.NAME:
                content = helpers.tool_content(helpers.text_block(result.text[:_LONGEST]))
                parent = event.parent or ""
                return helpers.update_tool_call(
                    self._ids.pop(parent, parent),
                    status="completed" if result.ok else "failed",
                    content=[content],
                )
        return None

    def diffs(self, question: ApprovalQuestion) -> list[Any]:
        """Return the changes of a call, with paths as the protocol wants them: absolute."""
        return [
            helpers.tool_diff_content(
                str(self._root / change.path), change.after or "", change.before
            )
            for change in question.changes
        ]

    def _asked_id(self, step: Step) -> str | None:
        """Return the id under which a call was asked about; secrets are masked in what runs."""
        same = [row for row in self._pending_calls if row[0] == step.tool]
        equal = [row for row in same if row[1] == dict(step.arguments)]
        row = next(iter(equal or same), None)
        if row is None:
            return None
        self._pending_calls.remove(row)
        return row[2]

    def _start(
        self, id: str, tool: str, arguments: Arguments, effects: Sequence[str], status: Any
    ) -> schema.ToolCallStart:
        kind: Any = next((name for effect, name in _KINDS if effect in effects), "other")
        about = arguments.get("path") or arguments.get("command") or ""
        paths = [arguments[name] for name in _PATHS if isinstance(arguments.get(name), str)]
        return helpers.start_tool_call(
            id,
            f"{tool} {about}".strip(),
            kind=kind,
            status=status,
            locations=[schema.ToolCallLocation(path=str(self._root / path)) for path in paths],
            raw_input=dict(arguments),
        )


def title_of(tool: Tool, reason: str | None) -> str:
    """Name what is asked about, and why no rule may allow it."""
    return f"{tool.name}: {reason}" if reason else tool.name


def consent_text(question: ApprovalQuestion, reason: str | None) -> str:
    """Return all that is asked about, in one block that an editor shows as it is.

    The editor draws the diffs itself; they are repeated where they hold something hidden.
    """
    texts = [text for change in question.changes for text in (change.before, change.after) if text]
    hidden = any(exact(text) != text for text in texts)
    shown = consent_of(question, reason).lines()
    lines = "\n".join(line.text for line in shown if hidden or line.kind != "diff")
    # The fence is longer than any run of backticks inside.
    longest = max((len(run) for run in re.findall("`+", lines)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{lines}\n{fence}"


def permission_options(always: str) -> list[schema.PermissionOption]:
    """Return the answers that the editor offers; ``always`` is the rule it would add."""
    options = [schema.PermissionOption(option_id="once", name="Allow", kind="allow_once")]
    if always:
        name = f"Always allow {always}"
        options.append(schema.PermissionOption(option_id="always", name=name, kind="allow_always"))
    options.append(schema.PermissionOption(option_id="no", name="Reject", kind="reject_once"))
    return options


def mode_state(mode: Mode) -> schema.SessionModeState:
    """Return the modes there are, and the present one."""
    available = [
        schema.SessionMode(id=mode.value, name=mode.value, description=meaning)
        for mode, meaning in MODES.items()
    ]
    return schema.SessionModeState(current_mode_id=mode.value, available_modes=available)


def prompt_text(prompt: Sequence[Any]) -> str:
    """Return what the user wrote, with the files the editor put beside it."""
    parts = []
    for block in prompt:
        if text := getattr(block, "text", None):
            parts.append(text)
        elif resource := getattr(block, "resource", None):
            parts.append(f"[{resource.uri}]\n{getattr(resource, 'text', '')}")
        elif uri := getattr(block, "uri", None):
            parts.append(f"[{uri}]")
    return "\n\n".join(parts)


def server_configs(servers: Sequence[Any] | None) -> list[ServerConfig]:
    """Return the MCP servers that an editor wants used; raise ``ConfigError`` for what is none.

    We ourselves may be among them, because the editor knows us as a server too.
    """
    configs: dict[str, ServerConfig] = {}
    for server in servers or ():
        name = _NOT_IN_A_NAME.sub("-", server.name).strip("-.")[:64]
        if name != OURS:
            configs[name] = read_config(name, _entry(server))
    return list(configs.values())


def _entry(server: Any) -> Mapping[str, Any]:
    if isinstance(server, schema.McpServerStdio):
        env = {variable.name: variable.value for variable in server.env or ()}
        return {"command": server.command, "args": list(server.args or ()), "env": env}
    if not isinstance(server, schema.HttpMcpServer | schema.SseMcpServer):
        raise ConfigError(
            f"server {server.name}: this transport is not spoken here",
            fix="Use stdio, http or sse",
        )
    headers = {header.name: header.value for header in server.headers or ()}
    return {"type": server.type, "url": server.url, "headers": headers}
