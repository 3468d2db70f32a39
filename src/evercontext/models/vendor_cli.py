"""Use Gemini CLI and Codex CLI as models that only write text.

Each run has a private home and an empty folder inside our sandbox; the program's own tools are off,
and an attempt to use one makes the reply an error. The prompt goes by stdin and never into the
arguments. ``JsonProtocol`` gives these models our tools.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
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
)
from evercontext.errors import (
    ContextTooLong,
    ModelAuthFailed,
    ModelProblem,
    ModelRefused,
    ModelUnavailable,
    ModelUnknown,
    NoSandbox,
    ProcessProblem,
    RateLimited,
)
from evercontext.models.context_windows import window
from evercontext.models.vendors.codex import Codex
from evercontext.models.vendors.gemini import Gemini
from evercontext.models.vendors.private_home import PrivateHome, private_home
from evercontext.models.vendors.program import Facts, Program, learn
from evercontext.models.vendors.reply import VendorReply, event_of
from evercontext.process.run import Completed, run
from evercontext.process.sandbox import Layer, Sandbox, choose

MAX_OUTPUT = 8 * 1024 * 1024
NETWORK = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "ALL_PROXY")
CERTIFICATES = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR")
_TOO_LONG = re.compile(
    r"context[_ ](?:length|window)|too long|too many tokens|maximum context|token count",
    re.IGNORECASE,
)
_USAGE_ERROR = re.compile(r"unexpected argument|unrecognized|Unknown argument|[Uu]sage:")
_LABELS = {"user": "User", "assistant": "Assistant", "tool": "Tool"}

Vendor = Gemini | Codex


def variables(vendor: Vendor, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables that a vendor's program needs of the environment."""
    names = (*NETWORK, *CERTIFICATES)
    lower = tuple(name.lower() for name in NETWORK)
    return (
        *vendor.variables,
        *vendor.files,
        *names,
        *lower,
        *vendor.configured_variables(environment),
    )


class VendorCli:
    """One vendor's program as a model that only writes text."""

    def __init__(
        self,
        vendor: Vendor,
        *,
        env: Mapping[str, str],
        state: Path,
        sandbox: str = "auto",
        timeout: float = 120.0,
        context_window: int | None = None,
        max_output: int = MAX_OUTPUT,
    ) -> None:
        """``env`` is the child's whole environment; private homes are made in ``state``."""
        self._vendor = vendor
        self._env = env
        self._state = state
        self._sandbox = sandbox
        self._timeout = timeout
        self._max_output = max_output
        bare = vendor.model or ("gpt-5" if vendor.program == "codex" else "gemini")
        name = f"{vendor.name}:{vendor.model}" if vendor.model else vendor.name
        self._info = ModelInfo(name, window(bare, context_window), native_tools=False)

    @property
    def info(self) -> ModelInfo:
        """A text-only model."""
        return self._info

    async def aclose(self) -> None:
        """Nothing stays open between requests."""

    async def facts(self) -> Facts:
        """Return what the installed version understands; an error if it cannot be used."""
        program, layer = await self._program()
        return await self._facts(program, layer)

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Run the program once; its answer comes whole."""
        reply = await self._reply(request)
        if reply.thought:
            yield ThoughtDelta(reply.thought)
        if reply.text:
            yield TextDelta(reply.text)
        yield EndDelta("end", reply.usage, self._info.bare_name)

    async def _program(self) -> tuple[Program, Layer]:
        name = self._vendor.program
        program = await asyncio.to_thread(Program.find, name, self._env)
        if program is None:
            message = f"{name} is not installed: it is not on PATH"
            raise ModelUnknown(message, fix=f"Run: {self._vendor.install}")
        return program, await asyncio.to_thread(self._layer)

    def _layer(self) -> Layer:
        try:
            return choose(self._sandbox)
        except NoSandbox as error:
            raise ModelUnknown(
                f"{self._vendor.program} is not run outside a sandbox: {error.message}",
                fix=f"{error.fix}, or set EC_SANDBOX=none to run it without",
            ) from error

    async def _facts(self, program: Program, layer: Layer) -> Facts:
        facts = await learn(
            program, self._vendor.probes, state=self._state, layer=layer, environment=self._env
        )
        if reason := self._vendor.misfit(facts):
            version = f" {facts.version}" if facts.version else ""
            raise ModelUnknown(
                f"{program.path}{version} cannot be used: {reason}",
                fix=f"Run: {self._vendor.install}",
            )
        return facts

    async def _reply(self, request: Request) -> VendorReply:
        vendor = self._vendor
        program, layer = await self._program()
        facts = await self._facts(program, layer)
        user = vendor.user_folder(self._env)
        homes = private_home(self._state, user, copied=vendor.copied, returned=vendor.returned)
        home = await asyncio.to_thread(homes.__enter__)
        try:
            schema = _schema_file(request, home.root)
            env = {**self._env, **vendor.prepare(home, user, self._env)}
            argv = [*program.command, *vendor.arguments(facts, home, schema)]
            stdin = vendor.stdin(prompt(request.messages)).encode("utf-8", "replace")
            sandbox = self._sandbox_of(program, layer, home, env)
            ended = await self._run(argv, home, env, stdin, sandbox)
        finally:
            await asyncio.to_thread(homes.__exit__, None, None, None)
        return self._read(ended, facts)

    def _sandbox_of(
        self, program: Program, layer: Layer, home: PrivateHome, env: Mapping[str, str]
    ) -> Sandbox:
        sandbox = program.sandbox(home.root, layer, network=True)
        named = [env[name] for name in (*CERTIFICATES, *self._vendor.files) if env.get(name)]
        return replace(sandbox, readable=(*sandbox.readable, *map(Path, named)))

    async def _run(
        self,
        argv: Sequence[str],
        home: PrivateHome,
        env: Mapping[str, str],
        stdin: bytes,
        sandbox: Sandbox,
    ) -> Completed:
        try:
            return await run(
                argv,
                cwd=home.work,
                env=env,
                stdin=stdin,
                timeout=self._timeout,
                max_output=self._max_output,
                sandbox=sandbox,
                on_output=_Watch(self._vendor).hear,
            )
        except ProcessProblem as error:
            raise ModelUnavailable(
                f"{self._vendor.program}: {error.message}", fix=error.fix
            ) from error

    def _read(self, ended: Completed, facts: Facts) -> VendorReply:
        program = self._vendor.program
        if ended.timed_out:
            raise ModelUnavailable(f"{program} did not finish in {self._timeout:g} s")
        if ended.truncated:
            raise ModelUnavailable(f"{program} printed more than {self._max_output} bytes")
        reply = self._vendor.read(ended.text, ended.error_text, ended.exit_code, facts)
        if reply.text is None:
            raise self._failed(ended, reply)
        return reply

    def _failed(self, ended: Completed, reply: VendorReply) -> ModelProblem:
        program, status = self._vendor.program, reply.status
        reason = " ".join((reply.error or "no answer in its output").split())[:300]
        if status in (401, 403):
            # The vendor's own words may hold part of the key.
            return ModelAuthFailed(
                f"{program} refused the login ({status})", fix=self._vendor.login
            )
        if status == 429 or reply.limited:
            return RateLimited(f"{program} reached a limit: {reason}")
        if status == 404:
            model = self._vendor.model or "the configured model"
            return ModelUnknown(f"{program} has no model {model}: {reason}")
        if status == 413 or (status == 400 and _TOO_LONG.search(reason)):
            return ContextTooLong(f"more than {program} can take: {reason}")
        if status is not None and 400 <= status < 500 and status not in (408, 409):
            return ModelRefused(f"{program} rejected the request: {reason}")
        if status is None and _USAGE_ERROR.search(ended.error_text):
            return ModelRefused(f"{program} does not understand its arguments: {reason}")
        if ended.exit_code == 0:
            return ModelUnavailable(f"{program} ended without an answer")
        return ModelUnavailable(f"{program} ended with {ended.exit_code}: {reason}")


class _Watch:
    """Reads a program's stream as it comes and stops it at the first thing that is not text."""

    def __init__(self, vendor: Vendor) -> None:
        self._vendor = vendor
        self._rest = b""

    def hear(self, stream: str, data: bytes) -> None:
        """Take a piece of output; ``ModelRefused`` ends the program."""
        if stream != "stdout":
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            event = event_of(line.decode("utf-8", "replace"))
            if event and (action := self._vendor.action(event)):
                raise ModelRefused(
                    f"{self._vendor.program} tried to use a tool of its own ({action[:60]})"
                    " and was stopped; its reply is not used"
                )


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
