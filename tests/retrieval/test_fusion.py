from __future__ import annotations

import numpy as np
import pytest

from evercontext.retrieval.fusion import Scale, standardise, weighted_sum

WORDS = np.array([3.0, 1.0, 2.0], np.float32)


def test_standard_scores_have_mean_0_and_spread_1() -> None:
    scores = standardise(WORDS)
    assert scores.mean() == pytest.approx(0, abs=1e-6)
    assert scores.std() == pytest.approx(1)
    assert scores.argsort().tolist() == WORDS.argsort().tolist()


@pytest.mark.parametrize("values", [[], [5.0], [2.0, 2.0, 2.0]])
def test_scores_that_are_all_equal_say_nothing(values: list[float]) -> None:
    assert standardise(np.array(values, np.float32)).tolist() == [0.0] * len(values)


def test_a_least_spread_keeps_small_differences_small() -> None:
    near = np.array([0.50, 0.51], np.float32)
    assert standardise(near)[1] == pytest.approx(1)
    assert standardise(near, 0.1)[1] == pytest.approx(0.05, rel=1e-3)


def test_scores_can_be_placed_on_the_scale_of_others() -> None:
    scale = Scale.of(WORDS)
    assert scale.apply(np.array([2.0], np.float32)).tolist() == [0.0]
    assert Scale().apply(WORDS).tolist() == [0.0, 0.0, 0.0]


def test_a_silent_signal_changes_nothing() -> None:
    silent = np.zeros(3, np.float32)
    total = weighted_sum({"a": WORDS, "b": silent}, {"a": 2.0, "b": 5.0}, 3)
    assert total.tolist() == (2 * WORDS).tolist()
    assert weighted_sum({}, {}, 2).tolist() == [0.0, 0.0]
