from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evercontext import testing
from evercontext.cli.improve import command
from evercontext.errors import EverContextError, UsageError
from tests.cli.command import EVERCONTEXT, evercontext

DOCUMENTS = Path(__file__).parent.parent / "evaluation" / "documents"
"""Five bad documents, and the versions that a writer makes of each, in their order."""
BAD = ("stub.md", "wall.md", "broken.md", "mixed.ja.md", "stub.ja.md")


@dataclass(frozen=True)
class Bench:
    folder: Path

    def bad(self, name: str) -> Path:
        path = self.folder / name
        path.write_bytes((DOCUMENTS / name).read_bytes())
        return path

    def writer(self, *texts: str) -> str:
        turns = [{"role": "writer", "text": text} for text in texts]
        return testing.write_script(self.folder / "writer.jsonl", turns)

    def writer_of(self, name: str) -> str:
        stem = name.removesuffix(".md")
        paths = sorted(DOCUMENTS.glob(f"{stem}.[0-9].md"))
        return self.writer(*(path.read_text(encoding="utf-8") for path in paths))

    def improve(self, path: Path, model: str, *more: str) -> dict[str, Any]:
        arguments = [str(path), "--model", model, "--judge", "local", "--json", *more]
        ended = CliRunner().invoke(command, arguments, standalone_mode=False)
        if ended.exception:
            raise ended.exception
        told: dict[str, Any] = json.loads(ended.stdout)
        return {**told, "exit": ended.return_value}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Bench(folder)


def scores(told: dict[str, Any]) -> list[float]:
    return [round_["score"] for round_ in told["rounds"]]


@pytest.mark.contract("L8", "L9", "L11")
@pytest.mark.parametrize(
    ("name", "more", "stop", "best"),
    [
        ("stub.md", (), "passed", 2),
        ("wall.md", ("--target", "9.1"), "passed", 2),
        ("broken.md", ("--max-iterations", "2"), "rounds used up", 2),
        ("mixed.ja.md", (), "no longer getting better", 2),
        ("stub.ja.md", (), "passed", 3),
    ],
)
def test_five_bad_documents_get_better_until_a_rule_stops_them(
    bench: Bench, name: str, more: tuple[str, ...], stop: str, best: int
) -> None:
    path = bench.bad(name)
    told = bench.improve(path, bench.writer_of(name), "--in-place", *more)
    tried = scores(told)
    assert (told["stop"], told["best"]) == (stop, best)
    assert tried[best] == max(tried) > tried[0]
    assert told["exit"] == (0 if stop == "passed" else 4)
    stem = name.removesuffix(".md")
    assert path.read_bytes() == (DOCUMENTS / f"{stem}.{best}.md").read_bytes()
    kept = Path(told["versions"])
    assert (kept / f"00-{name}").read_bytes() == (DOCUMENTS / name).read_bytes()
    assert len(list(kept.iterdir())) == len(tried)


@pytest.mark.contract("L8")
def test_stagnation_is_three_small_gains_and_not_the_fourth_round(bench: Bench) -> None:
    good = (DOCUMENTS / "stub.ja.3.md").read_text(encoding="utf-8")
    path = bench.bad("mixed.ja.md")
    small = [(DOCUMENTS / f"mixed.ja.{n}.md").read_text(encoding="utf-8") for n in (1, 2, 3)]
    told = bench.improve(path, bench.writer(*small, good), "--in-place")
    assert (told["stop"], len(told["rounds"])) == ("no longer getting better", 4)
    assert path.read_text(encoding="utf-8") == small[1]


@pytest.mark.contract("L8")
@pytest.mark.parametrize("name", BAD)
def test_a_bad_writer_leaves_no_document_worse(bench: Bench, name: str) -> None:
    path = bench.bad(name)
    before, worse = path.read_bytes(), ("未定 TODO TBD", "準備中 FIXME 未定", "作成中 TBD TODO")
    told = bench.improve(path, bench.writer(*worse), "--in-place", "--target", "10")
    assert told["exit"] == 4
    assert (told["best"], told["written"], told["undo"]) == (0, None, None)
    assert path.read_bytes() == before


@pytest.mark.contract("L9")
def test_undo_brings_the_original_back(bench: Bench) -> None:
    path = bench.bad("stub.ja.md")
    before = path.read_bytes()
    told = bench.improve(path, bench.writer_of("stub.ja.md"), "--in-place")
    assert path.read_bytes() != before
    undo = told["undo"].split()
    assert undo[:2] == ["evercontext", "undo"]
    ended = evercontext(*undo[1:], cwd=bench.folder)
    assert ended.code == 0, ended.err
    assert path.read_bytes() == before


def test_a_document_elsewhere_is_written_and_taken_back_there(bench: Bench, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    path = elsewhere / "stub.md"
    path.write_bytes(b"TODO\r\n")
    told = bench.improve(path, bench.writer_of("stub.md"), "--in-place")
    assert told["written"] == str(path)
    assert f"--root '{elsewhere}'" in told["undo"]
    ended = evercontext("undo", told["trace_id"][:8], "--root", str(elsewhere), cwd=bench.folder)
    assert ended.code == 0, ended.err
    assert path.read_bytes() == b"TODO\r\n"


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (b"\xef\xbb\xbfTODO\r\n\r\nTBD\r\n", b"\xef\xbb\xbf# Good\r\n\r\nText.\r\n"),
        (b"TODO\n\nTBD", b"# Good\n\nText."),
        (b"TODO\n\nTBD\n", b"# Good\n\nText.\n"),
    ],
)
def test_mode_line_endings_mark_and_last_newline_stay(
    bench: Bench, raw: bytes, wanted: bytes
) -> None:
    path = bench.folder / "a.md"
    path.write_bytes(raw)
    path.chmod(0o640)
    model = bench.writer("# Good\n\nText.\n", "# Good\n\nText.\n")
    told = bench.improve(path, model, "--in-place", "--max-iterations", "1")
    assert told["best"] == 1
    assert path.read_bytes() == wanted
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (Path(told["versions"]) / "00-a.md").read_bytes() == raw
    assert (Path(told["versions"]) / "01-a.md").read_bytes() == wanted


def test_a_link_in_the_folder_is_followed_and_one_out_of_it_refused(
    bench: Bench, tmp_path: Path
) -> None:
    (bench.folder / "docs").mkdir()
    (bench.folder / "docs" / "real.md").write_text("TODO\n")
    (bench.folder / "README.md").symlink_to("docs/real.md")
    told = bench.improve(bench.folder / "README.md", bench.writer_of("stub.md"), "--in-place")
    assert told["written"] == str(bench.folder / "docs" / "real.md")
    assert (bench.folder / "README.md").is_symlink()
    assert (bench.folder / "docs" / "real.md").read_text().startswith("# Tidy")
    (tmp_path / "outside.md").write_text("TODO\n")
    (bench.folder / "out.md").symlink_to("../outside.md")
    with pytest.raises(EverContextError, match="leads out of its folder"):
        bench.improve(bench.folder / "out.md", bench.writer_of("stub.md"), "--in-place")
    assert (tmp_path / "outside.md").read_text() == "TODO\n"


def test_the_result_goes_beside_the_document_or_where_it_is_wanted(bench: Bench) -> None:
    path, model = bench.bad("stub.md"), bench.writer_of("stub.md")
    before, best = path.read_bytes(), (DOCUMENTS / "stub.2.md").read_bytes()
    assert bench.improve(path, model)["written"] == str(bench.folder / "stub.md.improved")
    assert (bench.folder / "stub.md.improved").read_bytes() == best
    bench.improve(path, bench.writer_of("stub.md"), "--output", "out/new.md")
    assert (bench.folder / "out" / "new.md").read_bytes() == best
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("missing.md",),
        ("folder",),
        ("sjis.md",),
        ("binary.md",),
        ("stub.md", "--in-place", "--output", "x"),
        ("stub.md", "--output", "folder"),
        ("stub.md", "--output", "fifo"),
        ("stub.md", "--rubric", '{"clarity": NaN}'),
        ("stub.md", "--rubric", "missing.json"),
    ],
)
def test_bad_input_is_one_line_before_any_model_is_asked(
    bench: Bench, arguments: tuple[str, ...]
) -> None:
    bench.bad("stub.md")
    (bench.folder / "folder").mkdir()
    os.mkfifo(bench.folder / "fifo")
    (bench.folder / "sjis.md").write_bytes("# 文書\n\nこれは文書です。\n".encode("cp932"))
    (bench.folder / "binary.md").write_bytes(b"a\0b")
    before = sorted(entry.name for entry in bench.folder.iterdir())
    told = CliRunner().invoke(command, [*arguments, "--model", "scripted:none"])
    assert isinstance(told.exception, EverContextError), told.exception
    assert "\n" not in str(told.exception)
    assert sorted(entry.name for entry in bench.folder.iterdir()) == before


def test_a_writer_that_fails_leaves_the_document_and_names_the_versions(bench: Bench) -> None:
    path = bench.bad("stub.md")
    before = path.read_bytes()
    model = bench.writer("# Half\n\nBetter than nothing at all.\n")  # and no second turn
    ended = evercontext(
        "improve", str(path), "--in-place", "--model", model, "--judge", "local", cwd=bench.folder
    )
    assert ended.code not in (0, 4)
    assert path.read_bytes() == before
    place = Path(ended.err.split("versions so far: ")[1].splitlines()[0])
    assert sorted(entry.name for entry in place.iterdir()) == ["00-stub.md", "01-stub.md"]


def test_every_round_is_in_the_history(bench: Bench) -> None:
    path = bench.bad("stub.ja.md")
    told = bench.improve(path, bench.writer_of("stub.ja.md"), "--in-place")
    ended = evercontext("evaluate", "--history", "stub.ja.md", "--json", cwd=bench.folder)
    records = json.loads(ended.out)
    assert [record["round"] for record in records] == [0, 1, 2, 3]
    assert [record["score"] for record in records] == scores(told)
    assert {record["trace_id"] for record in records} == {told["trace_id"]}
    shown = evercontext("evaluate", "--history", "stub.ja.md", cwd=bench.folder).out
    assert "improve, round 3, judged by local" in shown
    assert told["versions"] in shown


def test_usage_errors_have_their_own_exit_code(bench: Bench) -> None:
    ended = evercontext("improve", "missing.md", cwd=bench.folder)
    assert ended.code == 64
    assert issubclass(UsageError, EverContextError)


STUBBORN = """#!/bin/sh
# Judges the original, then hangs and does not listen to anybody.
[ "$1" = --version ] && exit
cat > /dev/null
if [ -e {mark} ]; then trap '' TERM INT; echo $$ > {mark}; sleep 300; fi
touch {mark}
echo '{{"rubric_scores": {{"completeness": 1, "accuracy": 1, "clarity": 1, "usability": 1}}}}'
"""


@pytest.mark.contract("L13")
def test_ctrl_c_leaves_the_document_and_no_program(bench: Bench, tmp_path: Path) -> None:
    path, mark, program = bench.bad("stub.md"), tmp_path / "mark", tmp_path / "codex"
    before = path.read_bytes()
    program.write_text(STUBBORN.format(mark=mark))
    program.chmod(0o755)
    path_variable = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path_variable, "EC_SANDBOX": "none"}
    arguments = ["improve", str(path), "--in-place", "--judge", "codex"]
    with subprocess.Popen(
        [EVERCONTEXT, *arguments, "--model", bench.writer_of("stub.md")],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        while not (mark.exists() and mark.read_text().strip()) and running.poll() is None:
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=120)
    assert running.returncode == 130, said
    assert said.count("stopped\n") == 1
    assert "error: " not in said
    kept = Path(said.split("versions so far: ")[1].splitlines()[0])
    assert [entry.name for entry in kept.iterdir()] == ["00-stub.md"]
    assert path.read_bytes() == before
    assert not Path(f"/proc/{mark.read_text().strip()}").exists()


def test_a_document_that_lost_half_of_itself_is_pointed_out(bench: Bench) -> None:
    good = (DOCUMENTS / "stub.2.md").read_text(encoding="utf-8")
    path = bench.folder / "long.md"
    path.write_text("TODO. " + "A sentence that says nothing at all again. " * 200)
    model = bench.writer(good)
    arguments = [str(path), "--model", model, "--judge", "local", "--target", "9"]
    said = CliRunner().invoke(command, arguments, standalone_mode=False).stdout
    assert f"it was cut from {len(path.read_text())} to {len(good)} characters" in said
