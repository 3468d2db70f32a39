"""The vendors' programs are played by small executables that print what the real ones print."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from evercontext.domain.message import ToolCall, assistant, system, tool_result, user
from evercontext.domain.model import Request, ToolSpec, Usage, complete
from evercontext.errors import (
    ModelAuthFailed,
    ModelProblem,
    ModelRefused,
    ModelUnavailable,
    ModelUnknown,
    RateLimited,
)
from evercontext.models.json_protocol import JsonProtocol
from evercontext.models.load import load
from evercontext.models.vendor_cli import Codex, Gemini, Vendor, VendorCli, is_strict, prompt
from evercontext.settings import Settings

ASK = Request([system("Be brief."), user("こんにちは $(id) `x`")])

PLAYER = """#!{python}
import json, os, sys, time
from pathlib import Path
here = Path(__file__).parent
schema = [Path(a).read_text() for a in sys.argv if a.endswith("schema.json")]
seen = {{"argv": sys.argv[1:], "stdin": sys.stdin.read(), "cwd": os.listdir("."),
        "env": dict(os.environ), "schema": schema}}
(here / "seen.json").write_text(json.dumps(seen))
play = json.loads((here / "play.json").read_text())
time.sleep(play["sleep"])
sys.stdout.write(play["stdout"])
sys.stderr.write(play["stderr"])
sys.exit(play["exit"])
"""


class Stage:
    """A folder on PATH with one vendor's program in it."""

    def __init__(self, folder: Path, vendor: Vendor) -> None:
        self.folder = folder
        self.vendor = vendor
        program = folder / vendor.program
        program.write_text(PLAYER.format(python=sys.executable))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def plays(
        self, stdout: str = "", *, stderr: str = "", code: int = 0, sleep: float = 0
    ) -> VendorCli:
        play = {"stdout": stdout, "stderr": stderr, "exit": code, "sleep": sleep}
        (self.folder / "play.json").write_text(json.dumps(play))
        env = {"PATH": f"{self.folder}:{os.defpath}", "GEMINI_API_KEY": "k"}
        return VendorCli(self.vendor, env=env, timeout=1.0 if sleep else 60.0)

    @property
    def seen(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "seen.json").read_text())
        return found


def gemini_says(text: str) -> str:
    answer = {
        "session_id": "4f1c",
        "response": text,
        "stats": {
            "models": {
                "gemini-3-pro": {
                    "api": {"totalRequests": 1, "totalErrors": 0, "totalLatencyMs": 5053},
                    "tokens": {
                        "prompt": 24939,
                        "candidates": 20,
                        "total": 25113,
                        "cached": 21263,
                        "thoughts": 154,
                        "tool": 0,
                    },
                }
            },
            "tools": {"totalCalls": 0},
            "files": {"totalLinesAdded": 0},
        },
    }
    return json.dumps(answer, indent=2)


def lines(*events: dict[str, Any]) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def codex_says(text: str) -> str:
    return lines(
        {"type": "thread.started", "thread_id": "0199a213-81c0-7800-8aa1-bbab2a035a53"},
        {"type": "turn.started"},
        {
            "type": "item.completed",
            "item": {"id": "item_0", "type": "reasoning", "text": "**Thinking**"},
        },
        {
            "type": "item.completed",
            "item": {"id": "item_1", "type": "agent_message", "text": text},
        },
        {
            "type": "turn.completed",
            "usage": {"input_tokens": 24763, "cached_input_tokens": 24448, "output_tokens": 122},
        },
    )


async def test_gemini_answers(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Gemini("gemini-3-pro"))
    reply = await complete(stage.plays("Loaded cached credentials.\n" + gemini_says("はい")), ASK)
    assert (reply.text, reply.usage) == ("はい", Usage(24939, 20, 21263))
    argv = stage.seen["argv"]
    assert argv[:6] == [
        "--output-format",
        "json",
        "--approval-mode",
        "plan",
        "--model",
        "gemini-3-pro",
    ]


@pytest.mark.contract("L10")
async def test_codex_answers(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Codex())
    reply = await complete(stage.plays(codex_says("はい")), ASK)
    assert (reply.text, reply.thought) == ("はい", "**Thinking**")
    assert reply.usage == Usage(24763, 122, 24448)
    assert stage.seen["argv"] == [
        "exec",
        "--json",
        "--sandbox",
        "read-only",
        "--skip-git-repo-check",
        "-",
    ]


@pytest.mark.case(114)
@pytest.mark.parametrize("vendor", [Gemini(), Codex()])
async def test_the_prompt_goes_by_stdin_into_an_empty_room(tmp_path: Path, vendor: Vendor) -> None:
    stage = Stage(tmp_path, vendor)
    says = gemini_says if isinstance(vendor, Gemini) else codex_says
    await complete(stage.plays(says("ok")), ASK)
    seen = stage.seen
    assert seen["stdin"] == "Be brief.\n\nこんにちは $(id) `x`"
    assert not any("こんにちは" in word for word in seen["argv"])
    assert seen["cwd"] == []
    assert seen["env"]["GEMINI_API_KEY"] == "k"
    assert not set(seen["env"]) & set(os.environ) - {"PATH", "LC_CTYPE", "LC_ALL", "LANG", "PWD"}


@pytest.mark.case(100)
@pytest.mark.parametrize(("vendor", "own"), [(Gemini(), "GEMINI"), (Codex(), "OPENAI")])
async def test_a_program_gets_its_own_key_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vendor: Vendor, own: str
) -> None:
    stage = Stage(tmp_path, vendor)
    stage.plays(gemini_says("ok") if own == "GEMINI" else codex_says("ok"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    for name in ("GEMINI", "OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_API_KEY", "canary")
    model = await load(vendor.name, Settings(home=tmp_path))
    await complete(model, ASK)
    leaked = [name for name, value in stage.seen["env"].items() if value == "canary"]
    assert leaked == [f"{own}_API_KEY"]


FAILURES: list[tuple[Vendor, dict[str, Any], type[ModelProblem]]] = [
    (Gemini(), {"code": 1, "stderr": "something broke"}, ModelUnavailable),
    (Gemini(), {"code": 41, "stderr": "Please set an Auth method"}, ModelAuthFailed),
    (Gemini(), {"code": 42, "stderr": "No input provided via stdin."}, ModelRefused),
    (Gemini(), {"code": 53, "stderr": "Reached max session turns"}, ModelRefused),
    (
        Gemini(),
        {
            "code": 1,
            "stdout": json.dumps(
                {"error": {"type": "ApiError", "message": "RESOURCE_EXHAUSTED: quota", "code": 429}}
            ),
        },
        RateLimited,
    ),
    (Gemini(), {"stdout": "not json at all"}, ModelUnavailable),
    (Gemini(), {"stdout": '{"response": '}, ModelUnavailable),
    (Gemini(), {"stdout": "x" * 9_000_000}, ModelUnavailable),
    (Gemini(), {"stdout": gemini_says("late"), "sleep": 30}, ModelUnavailable),
    (
        Codex(),
        {
            "code": 1,
            "stdout": lines(
                {"type": "turn.started"},
                {"type": "error", "message": "unexpected status 401 Unauthorized"},
                {
                    "type": "turn.failed",
                    "error": {"message": "unexpected status 401 Unauthorized: log in again"},
                },
            ),
        },
        ModelAuthFailed,
    ),
    (
        Codex(),
        {
            "code": 1,
            "stdout": lines(
                {"type": "turn.failed", "error": {"message": "You've hit your usage limit."}}
            ),
        },
        RateLimited,
    ),
    (
        Codex(),
        {
            "code": 1,
            "stdout": lines({"type": "turn.failed", "error": {"message": "stream disconnected"}}),
        },
        ModelUnavailable,
    ),
    (Codex(), {"stdout": lines({"type": "turn.started"})}, ModelUnavailable),
    (Codex(), {"stdout": codex_says("half")[:-30]}, ModelUnavailable),
]


@pytest.mark.contract("L13", "L15")
@pytest.mark.case(111)
@pytest.mark.parametrize(
    ("vendor", "play", "kind"), FAILURES, ids=lambda value: str(value).strip()[:50]
)
async def test_every_failure_has_its_error(
    tmp_path: Path, vendor: Vendor, play: dict[str, Any], kind: type[ModelProblem]
) -> None:
    stage = Stage(tmp_path, vendor)
    with pytest.raises(ModelProblem) as caught:
        await complete(stage.plays(**play), ASK)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)


@pytest.mark.contract("L15")
async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    model = VendorCli(Gemini(), env={"PATH": str(tmp_path)})
    with pytest.raises(ModelUnknown, match=r"gemini is not on PATH.*npm install"):
        await complete(model, ASK)


@pytest.mark.contract("E13")
async def test_with_the_json_protocol_it_calls_our_tools(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Codex())
    says = '{"tool_calls": [{"name": "read_file", "parameters": {"path": "a"}}]}'
    tool = ToolSpec("read_file", "Reads.", {"type": "object", "properties": {"path": {}}})
    model = JsonProtocol(stage.plays(codex_says(says)))
    reply = await complete(model, Request([user("go")], tools=[tool]))
    assert [call.name for call in reply.tool_calls] == ["read_file"]
    assert "- read_file: Reads." in stage.seen["stdin"]
    assert stage.seen["schema"] == [], "an open parameters object is not strict"


async def test_a_strict_schema_is_handed_on(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Codex())
    schema = {
        "type": "object",
        "properties": {"score": {"type": "number"}},
        "required": ["score"],
        "additionalProperties": False,
    }
    await complete(
        stage.plays(codex_says('{"score": 1}')), Request([user("x")], response_schema=schema)
    )
    assert json.loads(stage.seen["schema"][0]) == schema


def test_strictness() -> None:
    assert not is_strict({"type": "object"})
    assert is_strict({"type": "array", "items": {"type": "string"}})


def test_a_conversation_is_written_out() -> None:
    call = ToolCall("c", "t", {})
    text = prompt([system("S"), user("U"), assistant("A"), tool_result(call, "R")])
    assert text.split("\n\n") == [
        "S",
        "The conversation so far:",
        "User:\nU",
        "Assistant:\nA",
        "Tool:\nR",
        "Your next reply:",
    ]
