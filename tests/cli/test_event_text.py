"""Events in a few words, in both languages (A8, A10)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evercontext.cli.event_text import (
    denied,
    describe_check,
    describe_final,
    error_line,
    seconds,
    shown_tool,
    subject,
    verdict,
)
from evercontext.cli.messages import language
from evercontext.domain.event import Final, StepResult, Verification


@pytest.fixture
def japanese(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    language.cache_clear()
    yield
    language.cache_clear()


def final(status: str = "done", error: str | None = None) -> Final:
    return Final(status=status, text="", exit_code=0, turns=2, error=error, changed=("a.py",))


def test_small_words() -> None:
    assert [seconds(n) for n in (0, 999, 1000, 61_500)] == ["0 ms", "999 ms", "1.0 s", "1 min 1 s"]
    assert subject({"content": "x", "path": "a.py"}) == "a.py"
    assert subject({"command": ["make", "test"]}) == "make test"
    assert subject({"query": "foo\nbar"}) == "foo bar"
    assert subject({}) == ""
    spent = Final(
        status="done",
        text="",
        exit_code=0,
        turns=1,
        duration_ms=1200,
        input_tokens=1200,
        output_tokens=34,
        cost_usd=0.00123,
    )
    assert describe_final(spent) == "0 files changed, 1 turn, 1,234 tokens, $0.0012, 1.2 s"


def command_result(code: int) -> StepResult:
    return StepResult(tool="run_command", ok=True, text="", exit_code=code)


def test_an_exit_code_that_is_not_0_is_no_green_word() -> None:
    assert verdict(command_result(0)) == ("exit 0", "green")
    assert verdict(command_result(3)) == ("exit 3", "yellow")


def test_a_tool_has_one_name() -> None:
    """A8: however a model spelt it."""
    names = ("read_file", "readFile", "run.test", "run__test", "srv:readFile")
    assert [*map(shown_tool, names)] == [
        "read_file",
        "read_file",
        "run.test",
        "run.test",
        "srv:readFile",
    ]


def test_what_a_person_chose_is_no_error() -> None:
    """A6: Esc and a no are neither red nor called an error."""
    assert error_line(final("cancelled", "stopped by the user")) == (
        "stopped by the user",
        "yellow",
    )
    assert error_line(final("failed", "it broke")) == ("error: it broke", "red")
    assert denied(StepResult(tool="t", ok=False, text="", error="approval_denied"))


@pytest.mark.usefixtures("japanese")
def test_a_turn_in_japanese() -> None:
    """A10: results, checks, endings and errors."""
    assert verdict(StepResult(tool="t", ok=True, text=""))[0] == "成功"
    assert describe_final(final()) == "1 ファイルを変更、2 ターン、0 ミリ秒"
    check = Verification(kind="test", command=("make", "test"), exit_code=1, summary="red")
    assert describe_check(check) == "テスト: make test → 終了コード 1。不合格"
    assert error_line(final("failed", "no key for openai. Use a stronger model"))[0] == (
        "エラー: openai のキーがありません。より強いモデルを使ってください"
    )
