from __future__ import annotations

import pytest

from evercontext.workspace.outcomes import counts, plain, ran, tail


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (
            "..F\n1 failed, 2 passed, 1 warning in 0.03s\n",
            {"failed": 1, "passed": 2, "warnings": 1},
        ),
        ("===== 5 passed, 2 skipped in 1.20s (0:00:01) =====", {"passed": 5, "skipped": 2}),
        ("no tests ran in 0.01s", {"passed": 0}),
        ("Ran 3 tests in 0.001s\n\nOK\n", {"passed": 3, "failed": 0, "skipped": 0}),
        (
            "Ran 3 tests in 0.001s\n\nOK (skipped=2)\n",
            {"passed": 1, "failed": 0, "skipped": 2},
        ),
        (
            "Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1, skipped=1)",
            {"passed": 2, "failed": 2, "skipped": 1},
        ),
        (
            "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured\n"
            "test result: FAILED. 1 passed; 3 failed; 0 ignored; 0 measured\n",
            {"passed": 3, "failed": 3, "skipped": 1},
        ),
        (
            "ok  \texample.com/a\t0.01s\nFAIL\texample.com/b\t0.02s\nok  \tc\t(cached)\n",
            {"packages_passed": 2, "packages_failed": 1},
        ),
        ("Tests:       1 failed, 5 passed, 6 total\n", {"failed": 1, "passed": 5}),
        ("      Tests  1 failed | 5 passed (6)\n".strip(), {"failed": 1, "passed": 5}),
        ("# tests 3\n# pass 2\n# fail 1\n# skipped 0\n", {"passed": 2, "failed": 1, "skipped": 0}),
        ("Found 3 errors.\n[*] 1 fixable", {"problems": 3}),
        ("All checks passed!", {}),
        ("I say: all 100 tests are fine, trust me", {}),
    ],
)
def test_counts_are_read_from_known_summaries_only(said: str, found: dict[str, int]) -> None:
    assert counts(said) == found


def test_skipped_tests_did_not_run() -> None:
    assert ran({"passed": 5, "failed": 1, "xfailed": 1, "skipped": 9, "deselected": 9}) == 7
    assert ran({"packages_passed": 2, "packages_failed": 1}) == 3
    assert ran({"problems": 3}) == ran({}) == 0


@pytest.mark.case(95)
def test_output_cannot_move_the_terminal() -> None:
    said = "\x1b[31mred\x1b[0m \x1b]52;c;aGk=\x07clip \x1b]0;title\x1b\\ bell\x07 \u202eback"
    assert plain(said.encode()) == "red clip  bell\\x07 \\x202eback"


def test_japanese_and_broken_bytes_stay_readable() -> None:
    assert (
        plain("日本\u3000語 e\u0301\ttab\r\nnext\rover".encode())
        == "日本\u3000語 e\u0301\ttab\nnext\nover"
    )
    assert plain(b"\xff\xfe") == "\ufffd\ufffd"


def test_the_tail_says_what_is_missing() -> None:
    text = "\n".join(f"line {number}" for number in range(1000))
    assert tail(text).startswith("… [")
    assert tail(text).endswith("line 999")
    assert tail("short") == "short"
