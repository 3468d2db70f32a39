"""Tool calls in the shapes that model families write, through the real adapter and loop.

    python benchmarks/replayed_calls.py

Each case is an answer as a server sends it: native calls, calls printed as text, patches,
search/replace blocks, damaged JSON. The recordings are our own, in the shapes that the vendors'
documentation and templates describe. A case counts as carried out if the tool that was meant ran
with the arguments that were meant; what was not is named.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evercontext.agent.loop import Loop
from evercontext.agent.task_limits import Meter, TaskLimits
from evercontext.domain.event import Event, Step, StepResult
from evercontext.domain.message import system, user
from evercontext.domain.tool import Caller, Door
from evercontext.errors import EverContextError
from evercontext.events.log import EventLog
from evercontext.files.policy import agent_policy
from evercontext.models.openai import OpenAIModel
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.file_tools import workspace_tools
from evercontext.workspace.workspace import LocalWorkspace

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.models.wire_server import Answer, sse, wire_server

SOURCE = "def add(a, b):\n    return a - b\n"
FIXED = SOURCE.replace("a - b", "a + b")
READ = {"path": "calc.py"}
ARGUMENTS = json.dumps(READ)
EDIT = {"path": "calc.py", "edits": [{"old": "a - b", "new": "a + b"}]}
PATCH = (
    "*** Begin Patch\n*** Update File: calc.py\n@@\n-    return a - b\n+    return a + b\n"
    "*** End Patch"
)
CALL = f'{{"name": "readFile", "arguments": {ARGUMENTS}}}'
LLAMA = f'{{"name": "readFile", "parameters": {ARGUMENTS}}}'
TYPED = f'{{"type": "function", {LLAMA[1:]}'
TAGS = "<function=readFile>\n<parameter=path>\ncalc.py\n</parameter>\n</function>"
BLOCK = "calc.py\n<<<<<<< SEARCH\n    return a - b\n=======\n    return a + b\n>>>>>>> REPLACE"


@dataclass(frozen=True)
class Case:
    """One answer, and what it meant: to read the file, or to fix it."""

    family: str
    shape: str
    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    edits: bool = False


CASES = [
    Case("GPT", "native call", calls=(("readFile", ARGUMENTS),)),
    Case("GPT", "two parallel calls", calls=(("list", "{}"), ("readFile", ARGUMENTS))),
    Case("GPT", "native edit", calls=(("replaceInFile", json.dumps(EDIT)),), edits=True),
    Case("GPT", "arguments encoded twice", calls=(("readFile", json.dumps(ARGUMENTS)),)),
    Case("GPT", "name with a prefix", calls=(("functions.readFile", ARGUMENTS),)),
    Case(
        "GPT",
        "apply_patch call",
        calls=(("apply_patch", json.dumps({"input": PATCH})),),
        edits=True,
    ),
    Case("GPT", "apply_patch printed", text=f"```\n{PATCH}\n```", edits=True),
    Case("Claude", "the other spelling of a name", calls=(("read_file", ARGUMENTS),)),
    Case(
        "Claude",
        "printed function_calls",
        '<function_calls>\n<invoke name="readFile">\n<parameter name="path">calc.py</parameter>\n'
        "</invoke>\n</function_calls>",
    ),
    Case("Qwen", "printed tool_call", f"<tool_call>\n{CALL}\n</tool_call>"),
    Case("Qwen", "printed function tags", TAGS),
    Case("Qwen", "fenced JSON", f"I will look.\n```json\n{CALL}\n```"),
    Case("Qwen", "search/replace block", BLOCK, edits=True),
    Case("Llama", "bare JSON with parameters", LLAMA),
    Case("Llama", "python_tag", f"<|python_tag|>{LLAMA}"),
    Case("Llama", "type function", TYPED),
    Case("Mistral", "TOOL_CALLS", f"[TOOL_CALLS][{CALL}]"),
    Case("Mistral", "trailing comma", calls=(("readFile", '{"path": "calc.py",}'),)),
    Case("DeepSeek", "single quotes", calls=(("readFile", "{'path': 'calc.py'}"),)),
    Case("DeepSeek", "arguments in a fence", calls=(("readFile", f"```json\n{ARGUMENTS}\n```"),)),
    Case("DeepSeek", "cut before the brace", calls=(("readFile", '{"path": "calc.py"'),)),
    Case(
        "DeepSeek",
        "special tokens",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>readFile\n```json\n"
        f"{ARGUMENTS}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    Case("Llama", "a list of Python calls", '[readFile(path="calc.py")]'),
    Case(
        "Kimi",
        "special tokens",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.readFile:0"
        f"<|tool_call_argument_begin|>{ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>",
    ),
    Case(
        "GLM",
        "arg_key and arg_value",
        "<tool_call>readFile\n<arg_key>path</arg_key>\n<arg_value>calc.py</arg_value>\n</tool_call>",
    ),
    Case("Granite", "tool_call token and a list", f"<|tool_call|>[{CALL}]"),
    Case("Qwen", "search/replace in a fence", f"calc.py\n```python\n{BLOCK[8:]}\n```", edits=True),
    Case(
        "Claude",
        "Claude Code's Edit",
        calls=(
            (
                "Edit",
                '{"file_path": "calc.py", "old_string": "a - b", "new_string": "a + b"}',
            ),
        ),
        edits=True,
    ),
    Case("Claude", "Claude Code's Read", calls=(("Read", '{"file_path": "calc.py"}'),)),
    Case(
        "Claude",
        "text editor tool",
        calls=(
            (
                "str_replace_based_edit_tool",
                '{"command": "str_replace", "path": "calc.py", "old_str": "a - b",'
                ' "new_str": "a + b"}',
            ),
        ),
        edits=True,
    ),
    Case(
        "GPT",
        "apply_patch as free text",
        calls=(("apply_patch", PATCH),),
        edits=True,
    ),
    Case(
        "GPT",
        "apply_patch through shell",
        calls=(("shell", json.dumps({"command": ["apply_patch", PATCH]})),),
        edits=True,
    ),
    Case(
        "Gemini",
        "Gemini CLI's replace",
        calls=(
            (
                "replace",
                '{"file_path": "calc.py", "old_string": "a - b", "new_string": "a + b"}',
            ),
        ),
        edits=True,
    ),
    Case("Gemini", "absolute_path", calls=(("read_file", '{"absolute_path": "calc.py"}'),)),
    Case(
        "Cline",
        "replace_in_file with a diff",
        calls=(("replace_in_file", json.dumps({"path": "calc.py", "diff": BLOCK[8:]})),),
        edits=True,
    ),
    Case("Gemma", "tool_code", '```tool_code\nreadFile(path="calc.py")\n```'),
]


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
        first = [answer("", (("readFile", ARGUMENTS),))] if case.edits else []
        server.will(*first, answer(case.text, case.calls), *([answer("Done.")] * 4))
        model = OpenAIModel("replayed", api_key="k", base_url=f"{server.url}/v1")
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
        print(f"{'yes' if carried_out else 'NO ':4} {case.family:9} {case.shape}")
    families = Counter(case.family for case in CASES)
    print()
    for family, count in families.items():
        print(f"{family:9} {done[family]} of {count} carried out as meant")
    print(f"{'all':9} {sum(done.values())} of {len(CASES)}")


if __name__ == "__main__":
    asyncio.run(main())
