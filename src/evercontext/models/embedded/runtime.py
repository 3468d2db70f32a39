"""llama.cpp in this process: one model, one thread of work, stoppable at every token."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import tempfile
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evercontext.domain.model import Usage
from evercontext.errors import (
    ContextTooLong,
    LibraryMissing,
    ModelProblem,
    ModelRefused,
    ModelUnknown,
    missing_library,
)
from evercontext.models.embedded import openmp
from evercontext.settings.installation import install_hint

_END: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text of a generation; the last one tells what it cost and whether it was cut."""

    text: str
    usage: Usage | None = None
    cut: bool = False


class Runtime:
    """A loaded GGUF file. Loading happens at the first generation, off the event loop."""

    def __init__(self, path: Path, *, window: int, verify: Callable[[Path], None]) -> None:
        """``verify`` raises if the file is not the one that was published."""
        self._path = path
        self._window = window
        self._verify = verify
        self._server: Any = None
        # One worker: llama.cpp has one slot, and generations queue up behind each other.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="llama")

    async def generate(self, body: Mapping[str, Any]) -> AsyncGenerator[Piece, None]:
        """Yield what the model writes for a completion (``prompt``) or chat (``messages``).

        Closing the generator stops the model at its next token; nobody has to wait for that.
        """
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        stopped = threading.Event()

        def hear(chunk: dict[str, Any]) -> bool:
            if not stopped.is_set():
                with contextlib.suppress(RuntimeError):  # the loop may be closing
                    loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            return stopped.is_set()

        def work() -> None:
            if not stopped.is_set():
                self._complete({**body, "stream": True}, hear)

        job = loop.run_in_executor(self._worker, work)
        job.add_done_callback(lambda _: chunks.put_nowait(_END))
        try:
            while (chunk := await chunks.get()) is not _END:
                yield _piece(chunk)
        finally:
            stopped.set()
        await job

    async def close(self) -> None:
        """Stop and give the memory back."""
        await asyncio.to_thread(self._unload)

    def _unload(self) -> None:
        self._worker.shutdown(wait=True, cancel_futures=True)
        # Dropping the last reference ends llama.cpp's own thread, which takes a moment.
        self._server = None

    def _complete(self, body: dict[str, Any], hear: Callable[[dict[str, Any]], bool]) -> None:
        if self._server is None:
            self._server = self._load()
        if "messages" in body:
            self._server.handle_chat_completions(body, hear)
        else:
            self._server.handle_completions(body, hear)

    def _load(self) -> Any:
        if importlib.util.find_spec("xllamacpp") is None:
            raise ModelUnknown("the embedded model needs its runtime", fix=install_hint("embedded"))
        # Before the runtime: the command that brings the file also brings what the runtime lacks.
        self._verify(self._path)
        llama = _llama(self._path.parent)
        with tempfile.TemporaryDirectory(prefix="evercontext-llama-") as private:
            try:
                return llama.Server(self._parameters(llama, private))
            except RuntimeError as error:
                raise ModelProblem(
                    f"llama.cpp could not load {self._path}",
                    fix="Close other programs if memory is short, or pull the model again",
                ) from error

    def _parameters(self, llama: Any, private: str) -> Any:
        parameters = llama.CommonParams()
        parameters.model.path = str(self._path)
        parameters.n_ctx = self._window
        parameters.n_parallel = 1
        # More threads spin against each other on a busy machine and become far slower than one.
        parameters.cpuparams.n_threads = 1
        parameters.cpuparams_batch.n_threads = 1
        parameters.warmup = False
        parameters.fit_params = False
        parameters.cache_ram_mib = 0
        parameters.verbosity = -1
        # The library insists on listening somewhere: a socket whose folder is removed at once.
        parameters.hostnames = [str(Path(private) / "llama.sock")]
        parameters.n_threads_http = 1
        parameters.ui = False
        return parameters


def _llama(folder: Path) -> Any:
    """llama.cpp as a module; a system library that it needs may lie in ``folder``."""
    try:
        try:
            return importlib.import_module("xllamacpp")
        except ImportError as error:
            missing = missing_library(error)
            if missing is None or missing.name != openmp.NAME:
                raise
            openmp.preload(folder)
        return importlib.import_module("xllamacpp")
    except (ImportError, LibraryMissing) as error:
        raise _cannot_load(error) from error


def _cannot_load(error: ImportError | LibraryMissing) -> ModelProblem:
    missing = missing_library(error) if isinstance(error, ImportError) else error
    if missing is not None:
        return ModelProblem(missing.message, fix=missing.fix)
    reason = str(error).partition("\n")[0]
    return ModelProblem(f"the runtime of the embedded model cannot be loaded: {reason}")


def _piece(chunk: Mapping[str, Any]) -> Piece:
    if "error" in chunk:
        raise _problem(chunk["error"])
    choice = chunk["choices"][0] if chunk.get("choices") else {}
    text = choice.get("text") or choice.get("delta", {}).get("content") or ""
    timings = chunk.get("timings")
    usage = _usage(timings) if timings else None
    return Piece(text, usage, cut=choice.get("finish_reason") == "length")


def _usage(timings: Mapping[str, Any]) -> Usage:
    cached = int(timings.get("cache_n", 0))
    return Usage(int(timings["prompt_n"]) + cached, int(timings["predicted_n"]), cached)


def _problem(error: Mapping[str, Any]) -> ModelProblem:
    if error.get("type") == "exceed_context_size_error":
        return ContextTooLong(
            f"{error.get('n_prompt_tokens')} tokens are more than the embedded model's window of"
            f" {error.get('n_ctx')}",
            fix="Shorten the task, or use a larger model",
        )
    return ModelRefused(f"llama.cpp refused the request: {error.get('message')}")
