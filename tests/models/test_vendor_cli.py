"""The vendors' programs are played by small executables, from recordings of the real ones."""

from __future__ import annotations

import json
import os
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
from evercontext.models.model_loader import load
from evercontext.models.vendor_cli import Vendor, VendorCli, is_strict, prompt
from evercontext.models.vendors.codex import Codex
from evercontext.models.vendors.gemini import Gemini
from evercontext.process.sandbox import available
from evercontext.settings import Settings
from tests.models.vendors.stage import (
    CODEX,
    GEMINI,
    Stage,
    codex_says,
    gemini_says,
    lines,
    recording,
)

ASK = Request([system("Be brief."), user("こんにちは $(id) `x`")])
LAYERS = [
    pytest.param(
        str(entry.layer),
        marks=pytest.mark.skipif(not entry.works, reason=f"no {entry.layer} here: {entry.why}"),
    )
    for entry in available()
]
pytestmark = pytest.mark.skipif(
    not any(entry.works for entry in available()), reason="no sandbox works here"
)
VERSIONS = [pytest.param(Codex, version, id=f"codex-{version}") for version in CODEX]
VERSIONS += [pytest.param(Gemini, version, id=f"gemini-{version}") for version in GEMINI]


async def test_gemini_answers(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Gemini("gemini-3-pro"))
    reply = await complete(stage.plays(gemini_says("はい、そうです")), ASK)
    assert (reply.text, reply.usage) == ("はい、そうです", Usage(24939, 20, 21263))


@pytest.mark.contract("L10")
async def test_codex_answers(tmp_path: Path) -> None:
    reply = await complete(Stage(tmp_path, Codex()).plays(codex_says("はい")), ASK)
    assert (reply.text, reply.thought) == ("はい", "**Thinking**")
    assert reply.usage == Usage(24763, 122, 24448)


@pytest.mark.case(114)
@pytest.mark.parametrize("vendor", [Gemini(), Codex()])
async def test_the_prompt_goes_by_stdin_into_an_empty_folder(
    tmp_path: Path, vendor: Vendor
) -> None:
    stage = Stage(tmp_path, vendor)
    seen = json.loads((await complete(stage.plays(stage.says("@SEEN@")), ASK)).text)
    assert seen["stdin"] == "Be brief.\n\nこんにちは $(id) `x`"
    assert not any("こんにちは" in word for word in seen["argv"])
    assert seen["cwd"] == []
    assert str(stage.home) not in json.dumps(seen["env"])


async def test_a_question_that_begins_with_a_slash_is_no_command_to_gemini(tmp_path: Path) -> None:
    """Gemini CLI 0.33 ran ``/memory add`` out of a prompt."""
    stage = Stage(tmp_path, Gemini())
    asked = Request([user("/memory add x")])
    seen = json.loads((await complete(stage.plays(stage.says("@SEEN@")), asked)).text)
    assert seen["stdin"] == "Request:\n/memory add x"


@pytest.mark.case(100)
@pytest.mark.parametrize(("vendor", "own"), [(Gemini(), "GEMINI"), (Codex(), "OPENAI")])
async def test_a_program_gets_its_own_key_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vendor: Vendor, own: str
) -> None:
    stage = Stage(tmp_path, vendor)
    stage.installs(stage.says("@SEEN@"))
    monkeypatch.setenv("PATH", f"{stage.bin}:{os.defpath}")
    for name in ("GEMINI", "OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_API_KEY", "canary")
    model = await load(vendor.name, Settings(home=tmp_path / "ec"))
    seen = json.loads((await complete(model, ASK)).text)
    leaked = [name for name, value in seen["env"].items() if value == "canary"]
    assert leaked == [f"{own}_API_KEY"]


async def test_a_program_gets_the_variables_of_its_provider_and_those_the_user_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P5: the env_key of a provider, lower-case proxies, and EC_VENDOR_VARIABLES."""
    stage = Stage(tmp_path, Codex())
    stage.installs(stage.says("@SEEN@"))
    config = Path.home() / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(
        'model_provider = "mine"\n[model_providers.mine]\nname = "mine"\nenv_key = "MINE_KEY"\n'
        'env_http_headers = { "X-Team" = "TEAM_HEADER" }\n'
    )
    monkeypatch.setenv("PATH", f"{stage.bin}:{os.defpath}")
    for name in ("MINE_KEY", "TEAM_HEADER", "NAMED_VARIABLE", "OTHER_KEY"):
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    settings = Settings(home=tmp_path / "ec", vendor_variables=("NAMED_VARIABLE",))
    seen = json.loads((await complete(await load("codex-cli", settings), ASK)).text)["env"]
    passed = {name for name, value in seen.items() if value == "canary"}
    assert passed == {"MINE_KEY", "TEAM_HEADER", "NAMED_VARIABLE"}
    assert seen["https_proxy"] == "http://127.0.0.1:9"


# P2, P3: text models, whatever they try

TRY = """
seen["key"] = attempt(lambda: open({home!r} + "/.ssh/id_rsa").read())
seen["project"] = attempt(lambda: open({home!r} + "/project/code.py").read())
seen["write"] = attempt(lambda: open({home!r} + "/owned", "w"))
import subprocess
seen["shell"] = attempt(lambda: subprocess.run(["/bin/sh", "-c", "echo run"], capture_output=True))
seen["list"] = attempt(lambda: os.listdir({home!r}))
open(os.path.join(os.environ["HOME"], "session.json"), "w").write("{{}}")
"""


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("vendor", [Gemini(), Codex()])
async def test_a_program_sees_no_key_no_project_and_no_shell(
    tmp_path: Path, vendor: Vendor, layer: str
) -> None:
    """P2, P3: our sandbox holds even a program whose tools are on."""
    stage = Stage(tmp_path, vendor)
    for name in (".ssh/id_rsa", "project/code.py"):
        path = stage.home / name
        path.parent.mkdir(parents=True)
        path.write_text("canary")
    before = sorted(stage.home.rglob("*"))
    played = stage.plays(
        stage.says("@SEEN@"), extra=TRY.format(home=str(stage.home)), sandbox=layer
    )
    text = (await complete(played, ASK)).text
    seen = json.loads(text)
    refused = ("FileNotFoundError", "PermissionError", "NotADirectoryError", "OSError")
    names = ("key", "project", "write", "shell", "list")
    assert {name: seen[name] for name in names if seen[name] not in refused} == {}
    assert "canary" not in text
    assert sorted(stage.home.rglob("*")) == before
    assert [path.name for path in stage.state.iterdir()] == ["programs.json"], "nothing is left"


@pytest.mark.parametrize(("kind", "version"), VERSIONS)
async def test_the_recorded_answer_of_each_version_is_read(
    tmp_path: Path, kind: type[Codex | Gemini], version: str
) -> None:
    """C1, P1."""
    played = recording(kind().program, version)["text"]
    stage = Stage(tmp_path, kind(), version)
    model = stage.plays(played["stdout"], stderr=played["stderr"], code=played["exit"])
    reply = await complete(model, ASK)
    assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens) == ("done", 10, 3)


@pytest.mark.parametrize(("kind", "version"), VERSIONS)
async def test_a_recorded_tool_call_of_each_version_is_an_error_and_stops_it(
    tmp_path: Path, kind: type[Codex | Gemini], version: str
) -> None:
    """P2, P3: it would run for minutes and then give an answer; neither is waited for."""
    played = recording(kind().program, version)["tool"]
    stage = Stage(tmp_path, kind(), version)
    with pytest.raises(ModelRefused, match="a tool of its own"):
        await complete(stage.plays(played["stdout"], sleep=600, timeout=300), ASK)


@pytest.mark.parametrize("vendor", [Gemini(), Codex()], ids=lambda vendor: vendor.program)
async def test_an_answer_beside_an_action_is_not_used(tmp_path: Path, vendor: Vendor) -> None:
    """P3."""
    stage = Stage(tmp_path, vendor)
    event = {"type": "item.started", "item": {"type": "mcp_tool_call"}}
    if isinstance(vendor, Gemini):
        event = {"type": "tool_use", "tool_name": "run_shell_command"}
    with pytest.raises(ModelRefused, match="a tool of its own"):
        await complete(stage.plays(lines(event) + stage.says("an answer")), ASK)


STATUSES: dict[str, type[ModelProblem]] = {
    "400": ModelRefused,
    "401": ModelAuthFailed,
    "429": RateLimited,
    "500": ModelUnavailable,
    "usage": ModelRefused,
}


@pytest.mark.contract("L15")
@pytest.mark.parametrize(("kind", "version"), VERSIONS)
async def test_the_recorded_failures_of_each_version_have_their_errors(
    tmp_path: Path, kind: type[Codex | Gemini], version: str
) -> None:
    """P4: HTTP statuses, also those folded into an exit code; usage errors are not retried."""
    known = recording(kind().program, version)
    stage = Stage(tmp_path, kind(), version)
    stage.plays(by_model={name: known[name] for name in STATUSES})
    caught: dict[str, type[ModelProblem]] = {}
    for name in STATUSES:
        model = Stage(tmp_path, kind(name), version).model()
        with pytest.raises(ModelProblem) as problem:
            await complete(model, ASK)
        caught[name] = type(problem.value)
        assert "\n" not in str(problem.value)
        assert "Unknown argument" in str(problem.value) or name != "usage" or kind is Codex
    assert caught == STATUSES


FAILURES: list[tuple[Vendor, dict[str, Any], type[ModelProblem]]] = [
    (Gemini(), {"code": 1, "stderr": "something broke"}, ModelUnavailable),
    (Gemini(), {"code": 41, "stderr": "Please set an Auth method"}, ModelAuthFailed),
    (Gemini(), {"code": 42, "stderr": "No input provided via stdin."}, ModelRefused),
    (Gemini(), {"code": 53, "stderr": "Reached max session turns"}, ModelRefused),
    (
        Gemini(),
        {
            "code": 145,
            "stderr": json.dumps(
                {"session_id": "1", "error": {"type": "E", "message": "no", "code": 401}}, indent=2
            ),
        },
        ModelAuthFailed,
    ),
    (Gemini(), {"stdout": "not json at all"}, ModelUnavailable),
    (Gemini(), {"stdout": '{"type": "message", '}, ModelUnavailable),
    (Gemini(), {"stdout": gemini_says("half")[:-40]}, ModelUnavailable),
    (Gemini(), {"stdout": "x" * 90_000, "max_output": 80_000}, ModelUnavailable),
    (Gemini(), {"stdout": gemini_says("late"), "sleep": 60, "timeout": 3.0}, ModelUnavailable),
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
        {"code": 1, "stderr": "Error: Your refresh token was already used. Please log in again."},
        ModelAuthFailed,
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
    assert type(caught.value) is kind, str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.contract("L15")
async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    model = VendorCli(Gemini(), env={"PATH": str(tmp_path)}, state=tmp_path / "state")
    with pytest.raises(ModelUnknown, match=r"gemini is not installed.*npm install"):
        await complete(model, ASK)


@pytest.mark.parametrize(
    ("vendor", "version", "words"),
    [
        (Gemini(), "0.30.1\n", "0.30.1 cannot be used: it is too old, 0.33.0 is the oldest"),
        (Codex(), "codex-cli 0.20.0\n", "0.20.0 cannot be used: it is too old, 0.50.0"),
        (Codex(), "hello\n", "cannot be used: it does not name its version"),
    ],
)
async def test_a_version_that_does_not_fit_is_named(
    tmp_path: Path, vendor: Vendor, version: str, words: str
) -> None:
    """P1: nothing is tried with a version that would not understand it."""
    stage = Stage(tmp_path, vendor)
    with pytest.raises(ModelUnknown, match=words):
        await complete(stage.plays(stage.says("never"), version=version), ASK)


async def test_a_refreshed_login_goes_back_to_the_user(tmp_path: Path) -> None:
    """P3: private copies, and yet no token is lost; everything else of the run is gone."""
    stage = Stage(tmp_path, Codex())
    folder = stage.home / ".codex"
    folder.mkdir()
    tokens = {"account_id": "a", "refresh_token": "old"}
    (folder / "auth.json").write_text(json.dumps({"tokens": tokens, "last_refresh": "2026-01-01"}))
    extra = (
        "path = os.path.join(os.environ['CODEX_HOME'], 'auth.json')\n"
        "login = json.load(open(path))\n"
        "login['tokens']['refresh_token'] = 'new'; login['last_refresh'] = '2026-02-02'\n"
        "json.dump(login, open(path, 'w'))\n"
        "os.makedirs(os.path.join(os.environ['CODEX_HOME'], 'sessions/2026'))\n"
    )
    await complete(stage.plays(stage.says("ok"), extra=extra), ASK)
    assert json.loads((folder / "auth.json").read_text())["tokens"]["refresh_token"] == "new"
    assert sorted(path.name for path in folder.iterdir()) == ["auth.json"]


@pytest.mark.contract("E13")
async def test_with_the_json_protocol_it_calls_our_tools(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Codex())
    says = '{"tool_calls": [{"name": "read_file", "parameters": {"path": "a"}}]}'
    tool = ToolSpec("read_file", "Reads.", {"type": "object", "properties": {"path": {}}})
    model = JsonProtocol(stage.plays(codex_says(says)))
    reply = await complete(model, Request([user("go")], tools=[tool]))
    assert [call.name for call in reply.tool_calls] == ["read_file"]


async def test_a_strict_schema_is_handed_on(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Codex())
    schema = {
        "type": "object",
        "properties": {"score": {"type": "number"}},
        "required": ["score"],
        "additionalProperties": False,
    }
    for asked, passed in ((schema, [schema]), ({"type": "object"}, [])):
        request = Request([user("x")], response_schema=asked)
        seen = json.loads((await complete(stage.plays(codex_says("@SEEN@")), request)).text)
        assert [json.loads(text) for text in seen["schema"]] == passed


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
