from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.errors import InvalidArguments, JudgeInvalid
from evercontext.evaluation.rubric import (
    DEFAULT_WEIGHTS,
    Judgement,
    Rubric,
    Suggestion,
    check_target,
    read_judgement,
    weigh,
)

FOUR = {"completeness": 8.0, "accuracy": 6.0, "clarity": 10.0, "usability": 5.0}


def said(**changes: Any) -> str:
    return json.dumps({"rubric_scores": FOUR, "suggestions": ["better"], **changes})


@pytest.mark.contract("L20", "L21")
def test_default_weights_and_a_score_computed_here() -> None:
    judgement = read_judgement(said(score=9.9), Rubric.of(), "judge")
    evaluation = weigh(judgement, Rubric.of(), 8.0, {"iteration": 1})
    assert evaluation.score == 7.2
    assert not evaluation.passed
    shape = evaluation.to_json()
    assert set(shape) == {"score", "rubric_scores", "pass", "suggestions", "metadata"}
    assert shape["metadata"] == {"model_used": "judge", "iteration": 1}


@pytest.mark.contract("L20")
def test_weights_are_normalised() -> None:
    assert Rubric.of({"completeness": 2, "accuracy": 2}).weights == {
        "completeness": 0.5,
        "accuracy": 0.5,
        "clarity": 0.0,
        "usability": 0.0,
    }
    assert Rubric.of({"tone": 3, "facts": 1}).weights == {"tone": 0.75, "facts": 0.25}


@pytest.mark.case(109)
@pytest.mark.parametrize(
    ("given_weights", "named"),
    [
        ({"accuracy": float("nan")}, "rubric.accuracy"),
        ({"accuracy": float("inf")}, "rubric.accuracy"),
        ({"clarity": -1}, "rubric.clarity"),
        ({"clarity": "0.5"}, "rubric.clarity"),
        ({"clarity": True}, "rubric.clarity"),
        ({"clarity": 0, "accuracy": 0}, "rubric"),
        ({"clarity": 10**400}, "rubric.clarity"),
        ({"a": 1e308, "b": 1e308}, "rubric.a"),
        ({"": 1}, "rubric"),
        ({"長" * 81: 1}, "rubric"),
        ({f"c{n}": 1 for n in range(21)}, "rubric"),
        ({}, "rubric"),
        ([1], "rubric"),
    ],
)
def test_bad_weights_are_refused_by_name(given_weights: Any, named: str) -> None:
    with pytest.raises(InvalidArguments, match=named):
        Rubric.of(given_weights)


@pytest.mark.case(109)
@pytest.mark.parametrize("target", [11, -0.1, float("nan"), "8", True])
def test_a_bad_target_is_refused(target: Any) -> None:
    with pytest.raises(InvalidArguments, match="target_score"):
        check_target(target, 8.0)


@pytest.mark.contract("L21")
@pytest.mark.case(111)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "{",
        "[]",
        '{"score": 5}',
        '{"rubric_scores": [1]}',
        said(rubric_scores={**FOUR, "clarity": 99}),
        said(rubric_scores={**FOUR, "clarity": -1}),
        said(rubric_scores={"clarity": 5}),
        said(rubric_scores={**FOUR, "clarity": "9"}),
        said(score=99),
        said(suggestions="one"),
        "{" * 50_000,
    ],
)
def test_a_judgement_that_is_none_is_an_error_never_clamped(text: str) -> None:
    with pytest.raises(JudgeInvalid):
        read_judgement(text, Rubric.of(), "judge")


@pytest.mark.parametrize("noise", ["{", '{"a":', '{"a":1} ', '{"rubric_scores": ', '{"x'])
def test_a_flood_of_braces_is_read_in_bounded_work(noise: str) -> None:
    flood = noise * (500_000 // len(noise))
    with pytest.raises(JudgeInvalid):
        read_judgement(flood, Rubric.of(), "j")
    assert read_judgement(flood + said(), Rubric.of(), "j").scores == FOUR


def test_a_judgement_inside_another_object_is_found() -> None:
    text = json.dumps({"type": "answer", "result": json.loads(said())}) + " {done}"
    assert read_judgement(text, Rubric.of(), "j").scores == FOUR


def test_the_judgement_is_found_among_other_output() -> None:
    noise = 'thinking {"a": 1}\n```json\n' + said() + "\n```\nbye {"
    assert read_judgement(noise, Rubric.of(), "j").scores == FOUR


@given(
    st.dictionaries(st.sampled_from(sorted(DEFAULT_WEIGHTS)), st.floats(0.01, 100), min_size=1),
    st.tuples(*[st.floats(0, 10)] * 4),
)
def test_a_score_is_always_within_its_parts(weights: dict[str, float], scores: Any) -> None:
    rubric = Rubric.of(weights)
    given_scores = dict(zip(DEFAULT_WEIGHTS, scores, strict=True))
    used = [given_scores[name] for name, weight in rubric.weights.items() if weight]
    score = rubric.score(given_scores)
    assert min(used) - 0.01 <= score <= max(used) + 0.01
    assert abs(sum(rubric.weights.values()) - 1) < 1e-9


def test_a_suggestion_names_its_line() -> None:
    judgement = Judgement(FOUR, (Suggestion("shorter", 3), Suggestion("x")), "j")
    assert [str(s) for s in judgement.suggestions] == ["line 3: shorter", "x"]


def test_suggestions_are_read_however_they_are_wrapped() -> None:
    wrapped = ["  a ", {"line": 3, "suggestion": "b"}, {"text": "丙"}, None, "", {"x": "é"}, 5]
    judgement = read_judgement(said(suggestions=wrapped), Rubric.of(), "x")
    assert [str(one) for one in judgement.suggestions] == ["a", "b", "丙", '{"x": "é"}', "5"]


@pytest.mark.parametrize(("score", "shown"), [("9", '"9"'), (10**400, "1" + "0" * 39)])
def test_a_score_that_is_none_is_shown_as_it_was_given(score: object, shown: str) -> None:
    scores = dict.fromkeys(Rubric.of().weights, score)
    with pytest.raises(JudgeInvalid, match=f"completeness = {shown}, not a number"):
        read_judgement(said(rubric_scores=scores), Rubric.of(), "x")
