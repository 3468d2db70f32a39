from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evercontext.cli.search import shown_score
from tests.index.world import SHOP, write

_PROGRAM = [sys.executable, "-c", "from evercontext.cli.main import main; main()"]


def _run(root: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_PROGRAM, *arguments, "--root", str(root)],
        input=given,
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.mark.contract("E5")
def test_index_then_search(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    first = _run(tmp_path, "index", "--json")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["files"] == len(SHOP)
    found = _run(tmp_path, "search", "charge a credit card", "--json", "-k", "1")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["chunks"][0]["path"] == "shop/payment.py"
    shown = _run(tmp_path, "search", "PaymentGateway", "--explain")
    assert "shop/payment.py:" in shown.stdout
    assert "symbol_defined" in shown.stdout


@pytest.mark.contract("E5")
def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    """F3, P15: a budget says what had no room, nonsense finds nothing, a prefix may be absolute."""
    copies = {f"shop/card_{n}.py": f"def charge_card_{n}(card): ...\n" for n in range(5)}
    write(tmp_path, SHOP | copies)
    asked = ("search", "charge a credit card", "--path-prefix")
    here = _run(tmp_path, *asked, "shop/", "--json")
    assert json.loads(here.stdout)["chunks"], here.stderr
    assert _run(tmp_path, *asked, f"{tmp_path}/shop/", "--json").stdout == here.stdout
    tight = _run(tmp_path, "search", "charge a credit card", "--budget", "50", "--json")
    told, count = json.loads(tight.stdout), len(json.loads(here.stdout)["chunks"])
    assert told["budget"] == 50
    assert told["left_out"] >= 1
    assert len(told["chunks"]) + told["left_out"] >= count
    shown = _run(tmp_path, "search", "charge a credit card", "--budget", "50")
    assert shown.returncode == 0
    assert f"{told['left_out']} more did not fit into 50 tokens" in shown.stderr
    nothing = _run(tmp_path, "search", "zxqv wrblk ffnord")
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert "nothing found" in nothing.stderr


@pytest.mark.contract("E5", "E36")
def test_definitions_behind_what_a_grammar_cannot_read_are_named(tmp_path: Path) -> None:
    rows = "".join(f"  column_{number} int,\n" for number in range(30))
    tables = ("goods", "orders", "invoices")
    text = "\\set ON_ERROR_STOP on\n" + "".join(
        f"CREATE TABLE {name}_2024 PARTITION OF {name} FOR VALUES FROM (1) TO (2);\n\n"
        f"CREATE UNLOGGED TABLE {name} (\n{rows}  last int\n) PARTITION BY RANGE (last);\n\n"
        for name in tables
    )
    write(tmp_path, {"schema.sql": text})
    for name in tables:
        done = _run(tmp_path, "search", name, "--json", "-k", "1")
        assert name in json.loads(done.stdout)["chunks"][0]["symbol"], done.stdout


def test_the_index_is_followed_until_ctrl_c(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "def a(): ...\n"})
    watching = subprocess.Popen(
        [*_PROGRAM, "index", "--watch", "--root", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with watching:
        assert watching.stderr
        for line in watching.stderr:
            if line.startswith("watching"):
                break
        watching.send_signal(signal.SIGINT)
        out, err = watching.communicate(timeout=60)
    assert (watching.returncode, err) == (130, "stopped\n")
    assert out.startswith("1 file indexed; 1 added")


def test_a_weak_hit_shows_no_score_of_nothing() -> None:
    assert [shown_score(score) for score in (0.0, 0.0049, 0.01, 0.456, 1.0)] == [
        "<0.01",
        "<0.01",
        "0.01",
        "0.46",
        "1.00",
    ]


def test_many_questions_give_one_line_each(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    done = _run(tmp_path, "search", "--stdin", "-k", "2", given="cart total\n\nRouter\n")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [a["query"] for a in answers] == ["cart total", "", "Router"]
    assert answers[0]["chunks"][0]["path"] == "shop/cart.py"
    assert "error" in answers[1]
    assert answers[2]["chunks"][0]["path"] == "web/routes.ts"


_REPORT = (
    "Refunds are lost\n\n### Steps\nI ran the tests with a mock of the card and saw in the log:\n"
    + "2024-01-01 12:00:00 INFO nothing of interest happened here\n" * 60
    + 'Traceback (most recent call last):\n  File "/srv/app/shop/payment.py", line 14, in refund\n'
    "    return payment.reverse()\nAttributeError: 'NoneType' object has no attribute 'reverse'\n"
)


def test_the_whole_text_of_an_issue_is_one_question(tmp_path: Path) -> None:
    """25.1: past 2,000 characters a question was refused, and no way took several lines."""
    write(tmp_path, SHOP)
    assert len(_REPORT) > 3_000
    done = _run(tmp_path, "search", "-", "--json", "-k", "1", given=_REPORT)
    assert done.returncode == 0, done.stderr
    best = json.loads(done.stdout)["chunks"][0]
    assert (best["path"], best["symbol"]) == ("shop/payment.py", "refund")
    assert best["start_line"] <= 14 <= best["end_line"]
    lines = json.dumps(_REPORT) + "\n" + json.dumps({"query": _REPORT}) + "\ncart total\n"
    many = _run(tmp_path, "search", "--stdin", "-k", "1", given=lines)
    answers = [json.loads(line) for line in many.stdout.splitlines()]
    assert [a["query"] for a in answers] == [_REPORT, _REPORT, "cart total"]
    assert [a["chunks"][0]["path"] for a in answers] == [
        "shop/payment.py",
        "shop/payment.py",
        "shop/cart.py",
    ]


def test_nothing_found_and_bad_use_have_their_codes(tmp_path: Path) -> None:
    assert _run(tmp_path, "search", "anything").returncode == 1
    assert _run(tmp_path, "search").returncode == 64
    assert _run(tmp_path / "nowhere", "search", "x").returncode != 0


@pytest.mark.contract("E6")
def test_hook_commands(tmp_path: Path) -> None:
    from evercontext.testing import git, tiny_repository

    tree = tiny_repository(tmp_path / "tree", SHOP)
    assert _run(tree, "git-hooks", "status").returncode == 1
    assert _run(tree, "hook", "install").returncode == 0
    assert _run(tree, "hook", "status").returncode == 0
    (tree / ".evercontext" / "spool").write_text("post-commit\n", "utf-8")
    drained = _run(tree, "hook", "drain")
    assert drained.stdout.startswith(f"{len(SHOP)} files"), drained.stderr
    assert git(tree, "status", "--porcelain") == ""
    assert _run(tree, "git-hooks", "uninstall").returncode == 0
