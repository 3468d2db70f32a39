"""Gemini CLI and Codex CLI as read-only models: text in, text out.

Each runs in an empty temporary directory with its own tools held to reading, the prompt on stdin
and never in the arguments. ``JsonProtocol`` gives them our tools.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evercontext.domain.message import Message
from evercontext.domain.model import (
    Delta,
    EndDelta,
    ModelInfo,
    Request,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from evercontext.errors import (
    ModelAuthFailed,
    ModelProblem,
    ModelRefused,
    ModelUnavailable,
    ModelUnknown,
    ProcessProblem,
    ProgramMissing,
    RateLimited,
)
from evercontext.models.lenient_json import NotJson, decode_at
from evercontext.models.windows import window
from evercontext.process.run import Completed, run

MAX_OUTPUT = 8 * 1024 * 1024
_AUTH = re.compile(r"\b401\b|unauthori[sz]ed|log ?in|api key|auth(?!or\b)", re.IGNORECASE)
_RATE = re.compile(r"\b429\b|rate limit|quota|RESOURCE_EXHAUSTED|usage limit", re.IGNORECASE)
_NETWORK = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS")
_LABELS = {"user": "User", "assistant": "Assistant", "tool": "Tool"}


@dataclass(frozen=True, slots=True)
class Said:
    """What a vendor's program said, taken out of its own format."""

    text: str | None
    thought: str = ""
    usage: Usage = Usage()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Gemini:
    """``gemini``: exit 0 fine, 1 failed, 41 not logged in, 42 bad input, 53 too many turns."""

    model: str = ""
    name: str = "gemini-cli"
    program: str = "gemini"
    install: str = "npm install -g @google/gemini-cli"
    variables: tuple[str, ...] = (
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GEMINI_CLI_HOME",
        *_NETWORK,
    )

    def arguments(self, schema: Path | None) -> list[str]:
        """Plan mode: its own tools may read and nothing else."""
        chosen = ["--model", self.model] if self.model else []
        asked = "Answer what is asked on standard input, with text only."
        return ["--output-format", "json", "--approval-mode", "plan", *chosen, "--prompt", asked]

    def read(self, output: str) -> Said:
        """One JSON object, after any lines of chatter."""
        found = _object_in(output)
        error = found.get("error")
        if error:
            return Said(None, error=str(error.get("message") if _is_map(error) else error))
        text = found.get("response")
        return Said(text if isinstance(text, str) else None, usage=_gemini_usage(found))


@dataclass(frozen=True, slots=True)
class Codex:
    """``codex exec``: JSON lines; the last agent message is the answer."""

    model: str = ""
    name: str = "codex-cli"
    program: str = "codex"
    install: str = "npm install -g @openai/codex"
    variables: tuple[str, ...] = ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME", *_NETWORK)

    def arguments(self, schema: Path | None) -> list[str]:
        """A sandbox that may read and nothing else; ``-`` reads the prompt from stdin."""
        chosen = ["--model", self.model] if self.model else []
        shape = ["--output-schema", str(schema)] if schema else []
        fixed = ["exec", "--json", "--sandbox", "read-only", "--skip-git-repo-check"]
        return [*fixed, *chosen, *shape, "-"]

    def read(self, output: str) -> Said:
        """Fold the events."""
        text: str | None = None
        error: str | None = None
        thoughts: list[str] = []
        usage = Usage()
        for event in _lines(output):
            item = event.get("item") or {}
            match event.get("type"), item.get("type"):
                case "item.completed", "agent_message":
                    text = item.get("text")
                case "item.completed", "reasoning":
                    thoughts.append(item.get("text") or "")
                case "turn.completed", _:
                    usage = _codex_usage(event.get("usage") or {})
                case "turn.failed", _:
                    error = str((event.get("error") or {}).get("message"))
                case "error", _:
                    error = error or str(event.get("message"))
        return Said(text, "\n".join(thoughts), usage, error if text is None else None)


Vendor = Gemini | Codex


class VendorCli:
    """One vendor's program as a model that only writes text."""

    def __init__(
        self,
        vendor: Vendor,
        *,
        env: Mapping[str, str],
        timeout: float = 120.0,
        context_window: int | None = None,
    ) -> None:
        """``env`` is the child's whole environment."""
        self._vendor = vendor
        self._env = env
        self._timeout = timeout
        bare = vendor.model or ("gpt-5" if vendor.program == "codex" else "gemini")
        name = f"{vendor.name}:{vendor.model}" if vendor.model else vendor.name
        self._info = ModelInfo(name, window(bare, context_window), native_tools=False)

    @property
    def info(self) -> ModelInfo:
        """A text-only model."""
        return self._info

    async def aclose(self) -> None:
        """Nothing stays open between requests."""

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Run the program once; its answer comes whole."""
        ended = await self._run(request)
        said = self._read(ended)
        if said.thought:
            yield ThoughtDelta(said.thought)
        if said.text:
            yield TextDelta(said.text)
        yield EndDelta("end", said.usage, self._info.bare_name)

    async def _run(self, request: Request) -> Completed:
        with tempfile.TemporaryDirectory(prefix="evercontext-") as folder:
            schema = _schema_file(request, Path(folder))
            empty = Path(folder) / "empty"
            empty.mkdir()
            argv = [self._vendor.program, *self._vendor.arguments(schema)]
            try:
                return await run(
                    argv,
                    cwd=empty,
                    env=self._env,
                    stdin=prompt(request.messages).encode(),
                    timeout=self._timeout,
                    max_output=MAX_OUTPUT,
                )
            except ProgramMissing as error:
                raise ModelUnknown(
                    f"{self._vendor.program} is not on PATH", fix=f"Run: {self._vendor.install}"
                ) from error
            except ProcessProblem as error:
                raise ModelUnavailable(f"{self._vendor.program}: {error.message}") from error

    def _read(self, ended: Completed) -> Said:
        if ended.timed_out:
            raise ModelUnavailable(
                f"{self._vendor.program} did not finish in {self._timeout:.0f} s"
            )
        if ended.truncated:
            raise ModelUnavailable(f"{self._vendor.program} printed more than {MAX_OUTPUT} bytes")
        try:
            said = self._vendor.read(ended.text)
        except NotJson:
            said = Said(None)
        if ended.exit_code == 0 and said.text is not None:
            return said
        raise self._failed(ended, said)

    def _failed(self, ended: Completed, said: Said) -> ModelProblem:
        last = ended.error_text.strip().splitlines()[-1:] or ["no answer in its output"]
        why = " ".join((said.error or last[0]).split())[:300]
        message = f"{self._vendor.program} ended with {ended.exit_code}: {why}"
        if ended.exit_code in (42, 53):
            return ModelRefused(message)
        if _RATE.search(why):
            return RateLimited(message)
        if ended.exit_code == 41 or _AUTH.search(why):
            return ModelAuthFailed(message, fix=f"Run {self._vendor.program} once and log in")
        return ModelUnavailable(message)


def prompt(messages: Sequence[Message]) -> str:
    """Return a conversation as one text; a single question stays as it is."""
    rules = [message.content for message in messages if message.role == "system"]
    spoken = [message for message in messages if message.role != "system"]
    if len(spoken) == 1:
        return "\n\n".join([*rules, spoken[0].content])
    turns = [f"{_LABELS[message.role]}:\n{message.content}" for message in spoken]
    return "\n\n".join([*rules, "The conversation so far:", *turns, "Your next reply:"])


def _schema_file(request: Request, folder: Path) -> Path | None:
    if request.response_schema is None or not is_strict(request.response_schema):
        return None
    path = folder / "schema.json"
    path.write_text(json.dumps(dict(request.response_schema)), encoding="utf-8")
    return path


def is_strict(schema: Any) -> bool:
    """True if every object in ``schema`` names and requires all it may hold, as Codex demands."""
    if isinstance(schema, list):
        return all(is_strict(part) for part in schema)
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object":
        required = set(schema.get("required", ()))
        if schema.get("additionalProperties") is not False:
            return False
        if required != set(schema.get("properties", {})):
            return False
    return all(is_strict(part) for part in schema.values())


def _object_in(output: str) -> dict[str, Any]:
    start = output.find("{")
    if start < 0:
        raise NotJson("no JSON")
    value, _ = decode_at(output, start)
    assert isinstance(value, dict)
    return value


def _lines(output: str) -> list[dict[str, Any]]:
    found = []
    for line in output.splitlines():
        if line.lstrip().startswith("{"):
            found.append(_object_in(line))
    return found


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping)


def _gemini_usage(found: Mapping[str, Any]) -> Usage:
    stats = found.get("stats") or {}
    total = Usage()
    for model in (stats.get("models") or {}).values():
        tokens = model.get("tokens") or {}
        total += Usage(
            tokens.get("prompt") or 0, tokens.get("candidates") or 0, tokens.get("cached") or 0
        )
    return total


def _codex_usage(found: Mapping[str, Any]) -> Usage:
    return Usage(
        found.get("input_tokens") or 0,
        found.get("output_tokens") or 0,
        found.get("cached_input_tokens") or 0,
    )
