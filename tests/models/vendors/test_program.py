from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from evercontext.models.vendors.codex import Codex
from evercontext.models.vendors.program import Facts, Program, learn
from evercontext.process.sandbox import Layer, available
from tests.models.vendors.stage import Stage

LAYER = next((entry.layer for entry in available() if entry.works), None)
needs_sandbox = pytest.mark.skipif(LAYER is None, reason="no sandbox works here")


def script(path: Path, first: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{first}\n")
    path.chmod(0o755)
    return path


def find(folder: Path) -> Program:
    program = Program.find("codex", {"PATH": f"{folder}:/usr/bin:/bin"})
    assert program is not None
    return program


def test_a_script_is_started_by_its_interpreter(tmp_path: Path) -> None:
    node = script(tmp_path / "bin" / "node", "/bin/sh")
    real = tmp_path / "lib" / "node_modules" / "@openai" / "codex" / "bin" / "codex.js"
    script(real, "/usr/bin/env -S node --no-warnings")
    (tmp_path / "bin" / "codex").symlink_to(real)
    program = find(tmp_path / "bin")
    assert program.command == (str(node), "--no-warnings", str(real))
    assert program.needs is not None
    assert tmp_path / "lib" / "node_modules" in program.needs
    assert not {Path("/usr"), Path("/bin"), Path("/usr/bin")} & set(program.needs), "no shell"


def test_a_program_that_a_shell_starts_gets_the_usual_programs(tmp_path: Path) -> None:
    path = script(tmp_path / "codex", "/bin/sh")
    program = find(tmp_path)
    assert (program.command, program.needs) == ((str(path),), None)


def test_a_home_is_never_taken_for_an_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``~/bin/node``: its prefix is the whole home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    node = script(tmp_path / "bin" / "node", "/bin/sh")
    script(tmp_path / "bin" / "codex", "/usr/bin/env node")
    program = find(tmp_path / "bin")
    assert program.needs is not None
    assert node in program.needs
    assert tmp_path not in program.needs


def test_none_is_none() -> None:
    assert Program.find("codex", {"PATH": "/nonexistent"}) is None


def test_versions_compare_as_numbers() -> None:
    facts = Facts("0.166.0-alpha.2")
    assert facts.at_least(0, 50, 0)
    assert not facts.at_least(0, 167)


@needs_sandbox
async def test_a_program_is_asked_once_and_again_when_it_changed(tmp_path: Path) -> None:
    assert LAYER is not None
    stage, state = Stage(tmp_path, Codex()), tmp_path / "state"
    environment = {"PATH": f"{stage.bin}:/usr/bin:/bin"}

    async def ask() -> Facts:
        probes = Codex().probes
        assert LAYER is not None
        return await learn(
            find(stage.bin), probes, state=state, layer=Layer(LAYER), environment=environment
        )

    stage.installs()
    facts = await ask()
    assert (facts.version, facts.features["shell_tool"]) == ("0.166.0", True)
    assert {"--json", "--ephemeral", "--sandbox"} <= set(facts.options)
    cache = state / "programs.json"
    cache.write_text(cache.read_text().replace('"0.166.0"', '"9.9.9"'))
    assert (await ask()).version == "9.9.9", "not asked again"
    stage.installs(version="codex-cli 0.167.0\n")
    assert (await ask()).version == "0.167.0"
    assert len(json.loads(cache.read_text())) == 1, "what is gone is forgotten"
    cache.write_text("{ broken")
    assert (await ask()).version == "0.167.0"


@needs_sandbox
async def test_a_program_that_names_no_version_is_not_remembered(tmp_path: Path) -> None:
    assert LAYER is not None
    path = tmp_path / "codex"
    path.write_text(f"#!{sys.executable}\nprint('hello')\n")
    path.chmod(0o755)
    facts = await learn(
        find(tmp_path), Codex().probes, state=tmp_path / "state", layer=LAYER, environment={}
    )
    assert facts == Facts()
    assert not (tmp_path / "state").exists()
