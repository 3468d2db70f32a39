from __future__ import annotations

import pytest

from evercontext.workspace.check_counts import counts, plain, ran, spell, tail, unproved


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


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("no tests ran in 0.01s", 5),
        ("----\nRan 0 tests in 0.000s\n\nOK", 0),
        ("----\nRan 0 tests in 0.000s\n\nNO TESTS RAN", 5),
        ("No tests found, exiting with code 0", 0),
        ("No tests found, exiting with code 1", 1),
        ("No test files found, exiting with code 1", 1),
        ("?   \texample.com/a\t[no test files]", 0),
        ("ok  \texample.com/a\t0.002s [no tests to run]", 0),
        ("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out", 0),
        ("3 skipped in 0.1s", 0),
        ("/usr/bin/python3: No module named pytest", 1),
        ("sh: 1: jest: not found", 127),
        ('npm error Missing script: "test"', 1),
        ("bwrap: execvp pytest: No such file or directory", 1),
    ],
)
def test_a_check_that_found_nothing_or_could_not_start_proves_nothing(said: str, code: int) -> None:
    """V1"""
    assert unproved(said, code, "pytest -q", tests=True)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("1 passed in 0.1s", 0),
        ("1 failed in 0.1s", 1),
        ("1 error in 0.1s", 2),
        ("?   \ta\t[no test files]\nok  \tb\t0.01s", 0),
        ("?   \ta\t[no test files]\nFAIL\tb [build failed]", 1),
        ("ok  \ta\t0.01s [no tests to run]\nok  \tb\t0.01s", 0),
        (
            "running 0 tests\ntest result: ok. 0 passed; 0 failed; 0 ignored\n"
            "test result: ok. 2 passed; 0 failed; 0 ignored",
            0,
        ),
        ("E   ModuleNotFoundError: No module named 'shop'\n1 error in 0.1s", 2),
        ("all is well", 0),
        ("", 1),
    ],
)
def test_a_check_that_ran_is_judged_by_how_it_ended(said: str, code: int) -> None:
    assert unproved(said, code, "pytest -q", tests=True) is None


def test_one_is_not_several() -> None:
    assert spell({"passed": 1, "errors": 1, "warnings": 1}) == "1 passed, 1 error, 1 warning"
    assert spell({"failed": 2, "warnings": 3}) == "2 failed, 3 warnings"
