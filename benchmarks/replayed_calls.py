"""Tool calls in the shapes that model families write, through the real adapter and loop.

    python benchmarks/replayed_calls.py
    python benchmarks/replayed_calls.py --sources      with the public fixture of each shape

Each case is an answer as a server sends it: native calls, calls printed as text, patches,
search/replace blocks, damaged JSON, in the shapes of public fixtures and transcripts
(``recorded_shapes.py`` names them). A case counts as carried out if the tool that was meant ran
with the arguments that were meant; what was not is named.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from evercontext.agent.loop import Loop
from evercontext.agent.task_limits import Meter, TaskLimits
from evercontext.domain.event import Event, Step, StepResult
from evercontext.domain.message import system, user
from evercontext.domain.model import Model
from evercontext.domain.tool import Caller, Door
from evercontext.errors import EverContextError
from evercontext.events.log import EventLog
from evercontext.files.policy import agent_policy
from evercontext.models.anthropic import AnthropicModel
from evercontext.models.openai import OpenAIModel
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.file_tools import workspace_tools
from evercontext.workspace.workspace import LocalWorkspace

sys.path.insert(0, str(Path(__file__).parents[1]))

from recorded_shapes import ARGUMENTS, CASES, FIXED, PROJECT, SOURCE, Case
from tests.models.wire_server import Answer, sse, wire_server


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """Return one event of a Chat Completions stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


def answer(text: str, calls: tuple[tuple[str, str], ...] = ()) -> Answer:
    """Return an answer as a server streams it: text in pieces, calls in fragments."""
    pieces = [chunk({"content": text[at : at + 7]}) for at in range(0, len(text), 7)]
    for index, (name, arguments) in enumerate(calls):
        head = {"index": index, "id": f"call_{index}", "type": "function"}
        pieces.append(chunk({"tool_calls": [head | {"function": {"name": name, "arguments": ""}}]}))
        for at in range(0, len(arguments), 5):
            fragment = {"index": index, "function": {"arguments": arguments[at : at + 5]}}
            pieces.append(chunk({"tool_calls": [fragment]}))
    return Answer(sse(*pieces, chunk({}, "tool_calls" if calls else "stop"), done=True))


def claude_answer(text: str, calls: tuple[tuple[str, str], ...] = ()) -> Answer:
    """Return an answer as Anthropic's API streams it."""
    usage = {"input_tokens": 377, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": text or "I'll look."},
        },
        {"type": "content_block_stop", "index": 0},
    ]
    for index, (name, arguments) in enumerate(calls, 1):
        block = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        for part in ("", *(arguments[at : at + 7] for at in range(0, len(arguments), 7))):
            delta = {"type": "input_json_delta", "partial_json": part}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    reason = "tool_use" if calls else "end_turn"
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 65},
        }
    )
    return Answer(sse(*events, {"type": "message_stop"}, event_names=True))


async def play(case: Case, folder: Path) -> bool:
    """Play one case; return whether what it meant was done."""
    root = folder / "project"
    root.mkdir()
    (root / "calc.py").write_text(SOURCE)
    workspace = LocalWorkspace.open(
        root, folder / "home", gateway=agent_policy(), agent=agent_policy(), environment={}
    )
    log, events = EventLog(folder / "traces"), list[Event]()
    log.subscribe(events.append)
    caller = Caller("replay", Door.RUN)
    async with wire_server() as server:
        says = claude_answer if case.wire == "anthropic" else answer
        first = [says("", (("readFile", ARGUMENTS),))] if case.edits else []
        server.will(*first, says(case.text, case.calls), *([says("Done.")] * 4))
        model = open_model(case.wire, server.url)
        loop = Loop(
            model=model,
            toolbox=Toolbox(workspace_tools(workspace), log),
            events=log,
            caller=caller,
            meter=Meter(TaskLimits(turns=4)),
        )
        try:
            await loop.run([system("You edit files."), user("Fix calc.py.")])
        except EverContextError:
            pass
        finally:
            await model.aclose()
    log.close()
    workspace.close()
    if case.edits:
        return (root / "calc.py").read_text() == FIXED
    return _read(events)


def open_model(wire: str, url: str) -> Model:
    """Open the adapter that speaks this wire format."""
    if wire == "anthropic":
        return AnthropicModel("replayed", api_key="k", base_url=url)
    return OpenAIModel("replayed", api_key="k", base_url=f"{url}/v1")


def _read(events: list[Event]) -> bool:
    """Tell whether the file was read, as the trace says."""
    good = {
        event.parent for event in events if isinstance(event.body, StepResult) and event.body.ok
    }
    return any(
        isinstance(event.body, Step)
        and event.body.tool in ("read_file", "readFile")
        and event.body.arguments.get("path") == "calc.py"
        and event.id in good
        for event in events
    )


async def main() -> None:
    """Play all cases and print the table."""
    done: Counter[str] = Counter()
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            carried_out = await play(case, Path(folder))
        done[case.family] += carried_out
        source = f"  [{case.source}]" if "--sources" in sys.argv else ""
        print(f"{'yes' if carried_out else 'NO ':4} {case.family:9} {case.shape}{source}")
    families = Counter(case.family for case in CASES)
    print()
    for family, count in families.items():
        print(f"{family:9} {done[family]} of {count} carried out as meant")
    public = sum(case.source != PROJECT for case in CASES)
    print(f"{'all':9} {sum(done.values())} of {len(CASES)}; {public} in the shape of a public file")


if __name__ == "__main__":
    asyncio.run(main())
