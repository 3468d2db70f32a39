from __future__ import annotations

import json

import pytest

from evercontext import errors
from evercontext.cli.failure import explain, report, wants_json
from tests.cli.command import evercontext


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["run", "--json"], True),
        (["run", "--output-format", "json"], True),
        (["run", "--output-format=stream-json"], True),
        (["run", "--output-format", "text"], False),
        (["run", "--task", "json"], False),
        (["run", "--", "--json"], False),
        ([], False),
    ],
)
def test_json_is_recognised_even_where_the_line_cannot_be_parsed(
    arguments: list[str], wanted: bool
) -> None:
    assert wants_json(arguments) is wanted


@pytest.mark.contract("E35")
@pytest.mark.parametrize("style", [["--json"], ["--output-format", "stream-json"]])
def test_a_failure_before_the_run_is_an_envelope(style: list[str]) -> None:
    ended = evercontext("run", "--task", "  ", *style)
    told = json.loads(ended.out)
    assert ended.code == told["exit_code"] == 64
    assert told["type"] == "result"
    assert told["is_error"] is True
    assert told["schema_version"] == 1
    assert told["error"]["code"] == "usage"
    assert "--task" in told["error"]["fix"]
    assert ended.err.count("\n") == 1


def test_an_unexpected_error_says_how_to_see_more() -> None:
    error = explain(KeyError("x"))
    assert type(error) is errors.EverContextError
    assert "EC_DEBUG=1" in str(error)


@pytest.mark.case(135)
def test_an_error_line_carries_no_secret() -> None:
    key = "sk-canary-0123456789abcdef"
    ended = evercontext("run", "--task", "x", "--root", f"/nowhere/{key}")
    assert ended.code == 1
    assert key not in ended.err + ended.out


@pytest.mark.case(95)
def test_an_error_line_carries_no_control_character() -> None:
    ended = evercontext("trace", "show", "\x1b]0;owned\x07")
    assert "\x1b" not in ended.err
    assert "\\x1b]0;owned" in ended.err


def test_who_stops_it_is_not_told_of_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(errors.Cancelled("stopped")) == 130
    assert capsys.readouterr().err == "stopped\n"
    assert report(KeyboardInterrupt()) == 130
    assert report(errors.Terminated("terminated"), ["run", "--json"]) == 143
    shown = capsys.readouterr()
    assert shown.err == "stopped\nterminated\n"
    assert json.loads(shown.out)["exit_code"] == 143


def test_a_missing_sub_command_is_named() -> None:
    ended = evercontext("tools")
    assert ended.code == 64
    assert "a sub-command is missing: call, discover, export. See" in ended.err
