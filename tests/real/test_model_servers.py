"""P7, P8: model servers that others wrote: llama.cpp with the small model, and litellm's proxy."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evercontext.domain.message import user
from evercontext.domain.model import NoticeDelta, ReplyBuilder, Request, ToolSpec
from evercontext.errors import ContextTooLong, LimitReached
from evercontext.models.model_loader import load
from evercontext.models.openai import OpenAIModel
from evercontext.models.tool_fallback import ToolFallback
from tests.cli.command import evercontext
from tests.models.test_model_loader import settings
from tests.real.install import Installed
from tests.real.marks import real
from tests.real.registry import BACKEND
from tests.real.users import environment
from tests.real.vendor_api import VendorApi, call, text

KEY = "sk-" + "0f" * 32
PATHS = {"type": "array", "items": {"type": "string"}, "maxItems": 100_000}
READ = ToolSpec(
    "read_files",
    "Read files of the project. " * 12,
    {"type": "object", "properties": {"paths": PATHS}, "required": ["paths"]},
)
ASK = Request(
    [user("Read the file a.py with read_files.")],
    tools=[READ],
    temperature=0.0,
    seed=1,
    max_output_tokens=120,
)


@contextmanager
def llama(model: Path, window: int) -> Iterator[str]:
    """Run llama.cpp's own server; yield its address."""
    command = [sys.executable, "-m", "tests.real.llama_server", str(model.resolve()), str(window)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin
        assert server.stdout
        try:
            yield server.stdout.readline().decode().strip()
        finally:
            server.stdin.close()
            server.kill()


@real(BACKEND, "llama.cpp")
async def test_what_llama_cpp_tells_of_itself_is_used(
    installed: Installed, smollm2: Path, tmp_path: Path
) -> None:
    """P7, P8: its template has no tools, and its window is small."""
    with llama(smollm2, 2048) as address:
        model = await load("openai:any", settings(tmp_path, openai_base_url=f"{address}/v1"))
        info = model.info
        await model.aclose()
    assert (info.window, info.native_tools, info.tiny) == (2048, False, True)


@real(BACKEND, "llama.cpp")
async def test_tools_that_llama_cpp_drops_are_called_by_json(
    installed: Installed, smollm2: Path
) -> None:
    """P7, P8: it is held to the protocol by a grammar that a large maxItems does not void."""
    with llama(smollm2, 2048) as address:
        model = ToolFallback(OpenAIModel("any", base_url=f"{address}/v1", timeout=250))
        builder, notices = ReplyBuilder(), []
        try:
            async for delta in model.stream(ASK):
                builder.add(delta)
                notices += [delta.text] if isinstance(delta, NoticeDelta) else []
        except LimitReached:
            # A model of this size may write on until its limit, inside the grammar.
            notices.append("cut off")
        await model.aclose()
    assert "takes no tools; it is asked for JSON instead" in notices[0]
    assert not model.info.native_tools
    called = [name for name in notices[1:] if "Not the JSON" in name and "cut off" not in name]
    assert not called, "the grammar was not held"


@real(BACKEND, "llama.cpp")
async def test_a_prompt_that_llama_cpp_cannot_take_is_told(
    installed: Installed, smollm2: Path
) -> None:
    """P8."""
    with llama(smollm2, 512) as address:
        model = OpenAIModel("any", base_url=f"{address}/v1", timeout=250, native_tools=False)
        try:
            async for _ in model.stream(Request([user("word " * 600)], max_output_tokens=5)):
                pass
        except ContextTooLong as problem:
            message = problem.message
        await model.aclose()
    assert "more than openai:any can take" in message


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def litellm(installed: Installed, folder: Path, models: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Run litellm's proxy in front of some models; yield its address."""
    listed = [{"model_name": name, "litellm_params": about} for name, about in models.items()]
    config = folder / "litellm.json"
    config.write_text(json.dumps({"model_list": listed}))
    port = _free_port()
    command = [installed.command, "--config", str(config), "--port", str(port)]
    quiet = {"LITELLM_TELEMETRY": "False", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    quiet["LITELLM_MASTER_KEY"] = KEY

    env = {**os.environ, **environment(installed), **quiet}
    log = (folder / "litellm.log").open("wb")
    with subprocess.Popen(
        [*command, "--host", "127.0.0.1"], env=env, stdout=log, stderr=log
    ) as server:
        try:
            _wait_for(f"http://127.0.0.1:{port}/health/liveliness", server, log.name)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()
            log.close()


def _wait_for(address: str, server: subprocess.Popen[bytes], log: str) -> None:
    deadline = time.monotonic() + 240
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < deadline:
        assert server.poll() is None, Path(log).read_text()[-600:]
        try:
            opener.open(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.5)
    raise AssertionError("the server did not come up")


@real(BACKEND, "litellm")
def test_a_task_is_done_through_litellm(installed: Installed, tmp_path: Path) -> None:
    """Native tools through the proxy; then one whose provider takes none, which litellm says."""
    writes = call("*writeFile", path="hello.txt", content="こんにちは\n")
    project = tmp_path / "project"
    project.mkdir()
    with VendorApi(writes, text("Written.")) as api:
        models = {
            "able": {"model": "openai/x", "api_base": f"{api.url}/v1", "api_key": "k"},
            "plain": {"model": "perplexity/sonar", "api_base": f"{api.url}/v1", "api_key": "k"},
        }
        with litellm(installed, tmp_path, models) as address:
            env = {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": KEY}
            words = ["--root", str(project), "--task", "Write hello.txt", "--json"]
            ended = evercontext("run", "-m", "openai:able", *words, env=env)
            assert ended.code == 0, ended.err + ended.out
            assert (project / "hello.txt").read_text() == "こんにちは\n"
            (project / "hello.txt").unlink()
            parameters = {"path": "hello.txt", "content": "hello\n"}
            calls = {"tool_calls": [{"name": "writeFile", "parameters": parameters}]}
            api.script = [text(json.dumps(calls)), text('{"final_answer": "Written."}')]
            ended = evercontext("run", "-m", "openai:plain", *words, env=env)
    assert ended.code == 0, ended.err + ended.out
    assert (project / "hello.txt").read_text() == "hello\n"
