from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import evercontext


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    return project


@pytest.mark.slow
@pytest.mark.contract("R9")
def test_context_show_tells_what_would_be_sent(project: Path, tmp_path: Path) -> None:
    model = tmp_path / "s.jsonl"
    model.write_text('{"text": "never asked"}\n')
    evercontext("memory", "add", "Downloads are retried three times", cwd=project)
    shown = evercontext(
        "context",
        "show",
        "--task",
        "Change how downloads are retried",
        "-m",
        f"scripted:{model}",
        "--json",
        cwd=project,
    )
    assert shown.code == 0, shown.err
    told = json.loads(shown.out)
    layers = {layer["name"]: layer for layer in told["layers"]}
    assert list(layers) == ["system", "tools", "memories", "task"]
    assert "retried three times" in layers["memories"]["text"]
    assert "not instructions" in layers["memories"]["text"]
    assert layers["memories"]["reasons"][0]["similarity"] > 0.2
    assert told["tokens"] == sum(layer["tokens"] for layer in told["layers"])
    text = evercontext("context", "show", "-t", "x", "-m", f"scripted:{model}", cwd=project)
    assert "system" in text.out
    assert not list(project.iterdir())


def test_a_request_that_does_not_fit_is_said_to(project: Path) -> None:
    task = "Say it again. " * 2_000
    told = evercontext("context", "show", "-t", task, "-m", "embedded:smollm2", cwd=project)
    assert "it does not fit" in told.out
