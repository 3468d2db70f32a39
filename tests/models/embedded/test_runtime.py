from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path

import pytest

from evercontext.errors import ContextTooLong, ModelProblem, ModelRefused, ModelUnknown
from evercontext.models.embedded.file_forms import one_of
from evercontext.models.embedded.runtime import Runtime

STORY = {"prompt": "Once upon a time", "max_tokens": 3000, "temperature": 0}


def runtime(path: Path, window: int = 512) -> Runtime:
    return Runtime(path, window=window, verify=lambda path: None)


async def written(model: Runtime, body: dict[str, object]) -> str:
    async with aclosing(model.generate(body)) as pieces:
        return "".join([piece.text async for piece in pieces])


@pytest.mark.embedded
async def test_the_grammar_binds_and_greedy_writing_repeats_itself(smollm2: Path) -> None:
    model = runtime(smollm2)
    try:
        texts = ('"x"\\y', "こんにちは")
        grammar = f"root ::= {one_of(texts)}"
        odd = {"prompt": "Two and two is", "grammar": grammar, "seed": 3}
        assert await written(model, {**odd, "temperature": 5}) in texts
        body = {"prompt": "The sky is", "max_tokens": 8, "temperature": 0}
        assert await written(model, body) == await written(model, body) != ""
    finally:
        await model.close()


@pytest.mark.embedded
async def test_usage_is_told_with_the_last_piece(smollm2: Path) -> None:
    model = runtime(smollm2)
    try:
        async with aclosing(model.generate({"prompt": "One two", "max_tokens": 4})) as pieces:
            last = [piece async for piece in pieces][-1]
        assert last.cut
        assert last.usage is not None
        assert (last.usage.input_tokens, last.usage.output_tokens) == (2, 4)
    finally:
        await model.close()


@pytest.mark.embedded
async def test_a_cancelled_generation_frees_the_model_for_the_next(smollm2: Path) -> None:
    model = runtime(smollm2, window=4096)
    started = asyncio.Event()

    async def listen() -> None:
        async with aclosing(model.generate(STORY)) as pieces:
            async for _ in pieces:
                started.set()

    try:
        task = asyncio.create_task(listen())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # 3000 tokens take far longer than this test may: the next one only runs if they stopped.
        assert await written(model, {"prompt": "The sky is", "max_tokens": 2, "temperature": 0})
    finally:
        await model.close()


@pytest.mark.embedded
async def test_too_long_a_prompt_is_told_apart_from_a_bad_request(smollm2: Path) -> None:
    model = runtime(smollm2)
    try:
        with pytest.raises(ContextTooLong, match="window of 512"):
            await written(model, {"prompt": "word " * 2000})
        with pytest.raises(ModelRefused):
            await written(model, {"prompt": "x", "grammar": "root ::= ("})
    finally:
        await model.close()


@pytest.mark.embedded
async def test_nothing_listens_on_the_network_and_signals_stay_ours(smollm2: Path) -> None:
    import signal

    def sockets() -> set[str]:
        """Addresses this process listens on; others on the machine come and go."""
        own = {os.readlink(fd) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()}
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return {line[1] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in own}

    before, handler = sockets(), signal.getsignal(signal.SIGINT)
    model = runtime(smollm2)
    try:
        await written(model, {"prompt": "x", "max_tokens": 1})
        assert sockets() - before == set()
        assert signal.getsignal(signal.SIGINT) == handler
    finally:
        await model.close()


@pytest.mark.embedded
async def test_a_file_that_is_no_model_is_one_line(smollm2: Path) -> None:
    bad = smollm2.with_name("bad.gguf")
    bad.write_bytes(b"GGUF" + bytes(2000))
    model = runtime(bad)
    try:
        with pytest.raises(ModelProblem, match="could not load"):
            await written(model, {"prompt": "x"})
    finally:
        await model.close()


async def test_without_the_extra_the_error_says_how_to_install_it(tmp_path: Path) -> None:
    # A fresh interpreter that really has no such package: site-packages are switched off.
    script = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parents[3] / "src")!r})
from pathlib import Path
from evercontext.errors import ModelUnknown
from evercontext.models.embedded.runtime import Runtime

async def main():
    model = Runtime(Path("x.gguf"), window=512, verify=lambda path: None)
    try:
        async for _ in model.generate({{"prompt": "x"}}):
            pass
    except ModelUnknown as error:
        print(error)
    await model.close()

asyncio.run(main())
"""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", script, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await child.communicate()
    assert b"evercontext[embedded]" in said


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="its runtime is not installed")
async def test_the_file_is_verified_before_native_code_sees_it(tmp_path: Path) -> None:
    def verify(path: Path) -> None:
        raise ModelUnknown("not this one")

    model = Runtime(tmp_path / "any.gguf", window=512, verify=verify)
    try:
        with pytest.raises(ModelUnknown, match="not this one"):
            await written(model, {"prompt": "x"})
    finally:
        await model.close()


def needing(library: bytes, folder: Path) -> Path:
    """A package ``xllamacpp`` whose native code needs a library that no system has."""
    native = next(Path(find_spec("websockets").origin).parent.glob("speedups*.so"))  # type: ignore[union-attr,arg-type]
    package = folder / "xllamacpp"
    package.mkdir()
    content = native.read_bytes()
    assert b"libc.so.6\0" in content
    (package / native.name).write_bytes(content.replace(b"libc.so.6\0", library + b"\0"))
    (package / "__init__.py").write_text("from . import speedups")
    return folder


@pytest.mark.embedded
@pytest.mark.skipif(sys.platform != "linux", reason="the linker's words are those of Linux")
def test_a_system_library_that_is_missing_is_named(smollm2: Path, tmp_path: Path) -> None:
    """S1: it is not "not installed", and installing it again would not help."""
    environment = {**os.environ, "PYTHONPATH": str(needing(b"libq.so.6", tmp_path))}
    done = subprocess.run(
        [Path(sys.executable).with_name("evercontext"), "model", "test", "embedded:smollm2"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "a system library is missing: libq.so.6. Install the package" in done.stderr
    assert "pip install" not in done.stderr
    assert done.stderr.count("\n") == 1
