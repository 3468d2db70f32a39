from __future__ import annotations

import json

import pytest

from evercontext.context.text_shape import MEASURES
from evercontext.context.token_estimate import (
    FARTHEST,
    PER_REPLY,
    REFERENCES,
    SIZE,
    Calibration,
    TokenEstimator,
    count,
    exact_encoding,
    features,
)
from evercontext.domain.message import user

KINDS = {
    "english": "The assembler fetches each layer and packs it into the window. ",
    "japanese": "コンテキストは予算の中に必ず収まり、記憶は正しく見つかります。",
    "python": "def fit(items: list[int]) -> dict:\n    return {str(i): i for i in items}\n",
    "json": json.dumps({"path": "src/app.py", "size": 1024, "ok": True, "tags": ["a", "b"]}),
    "mixed": "関数 parse_args() は argparse を使います: see `cli/main.py`.\n",
}


@pytest.mark.contract("R44")
def test_a_greeting_costs_between_ten_and_thirty() -> None:
    assert 10 <= TokenEstimator().estimate([{"role": "user", "content": "こんにちは"}]) <= 30


def test_no_messages_cost_nothing() -> None:
    assert TokenEstimator().estimate([]) == 0


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4.1-nano", "o200k_base"),
        ("openai:gpt-4o", "o200k_base"),
        ("o3", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("claude-sonnet-4-5", None),
        ("ollama:hermes3:8b", None),
    ],
)
def test_which_models_are_counted_exactly(model: str, encoding: str | None) -> None:
    assert exact_encoding(model) == encoding


def test_openai_counts_are_the_public_encodings_own() -> None:
    text = "Hello, world! こんにちは世界"
    assert TokenEstimator("gpt-4.1-nano").count(text) == count(text, "o200k_base")


def true_tokens(text: str) -> int:
    """Another vocabulary than the one the features come from, standing for a closed one."""
    return count(text, "llama3")


@pytest.mark.contract("R7", "R34", "R52")
def test_ten_replies_make_the_estimate_good_on_text_not_seen() -> None:
    estimator = TokenEstimator("claude-sonnet-4-5")
    for n in range(10):
        kinds = list(KINDS.values())
        text = kinds[n % 5] * (3 + n) + kinds[(n + 2) % 5] * 4
        frames = 4 + 3
        estimator.learn([user(text)], true_tokens(text) + frames)
    for kind, text in KINDS.items():
        held_out = f"{kind} {text * 7} end"
        off = estimator.count(held_out) / true_tokens(held_out) - 1
        assert abs(off) < 0.10, (kind, off)


@pytest.mark.contract("R52")
def test_what_was_learnt_survives_the_store() -> None:
    estimator = TokenEstimator("claude")
    for text in KINDS.values():
        estimator.learn([user(text)], true_tokens(text) + 7)
    kept = json.loads(json.dumps(estimator.calibration.to_json()))
    again = TokenEstimator("claude", Calibration.from_json(kept))
    assert again.count(KINDS["mixed"]) == estimator.count(KINDS["mixed"])
    assert again.calibration.seen == 5


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {"gram": "x"},
        {"gram": [[float("nan")] * SIZE] * SIZE, "moment": [0] * SIZE, "seen": 1},
        {"gram": [[1.0] * 4] * 4, "moment": [0] * 4, "seen": 1},
        {"gram": [[1.0]], "moment": [1.0], "seen": 1},
    ],
)
def test_a_damaged_calibration_is_a_fresh_start(kept: dict[str, object]) -> None:
    assert Calibration.from_json(kept).seen == 0


def test_absurd_usage_numbers_never_make_an_estimate_negative() -> None:
    estimator = TokenEstimator("claude")
    for real in (0, -5, 1, 10**9, 3):
        estimator.learn([user(KINDS["english"])], real)
    assert all(estimator.count(text) > 0 for text in KINDS.values())


@pytest.mark.parametrize("share", [0.35, 0.5, 2.0, 2.9])
def test_no_sequence_of_replies_leads_far_from_what_is_expected(share: float) -> None:
    fresh, told = TokenEstimator("claude"), TokenEstimator("claude")
    texts = [*KINDS.values(), "".join(KINDS.values()) * 20]
    for _ in range(60):
        for text in texts:
            # Each reply a little further in its direction than the estimate has come.
            told.learn([user(text)], max(8, round(told.count(text) * share) + 7))
    for text in (*texts, "नमस्ते दुनिया " * 30, "0123456789" * 40, "a" * 500):
        expected = fresh.calibration.estimate(features(text))
        found = told.calibration.estimate(features(text))
        assert expected / FARTHEST <= found * 1.000001
        assert found <= expected * FARTHEST * 1.000001


def test_a_calibration_that_was_led_astray_is_bounded_when_it_is_read() -> None:
    gram = [[float(i == j) * 1e12 for j in range(SIZE)] for i in range(SIZE)]
    led = Calibration.from_json({"gram": gram, "moment": [-1e12] * SIZE, "seen": 9})
    for text in KINDS.values():
        found, expected = features(text), Calibration().estimate(features(text))
        assert led.estimate(found) == pytest.approx(expected / FARTHEST)


def test_half_a_character_is_counted() -> None:
    broken = "a tool printed \ud83d here, \udc00"
    whole = broken.replace("\ud83d", "\ufffd").replace("\udc00", "\ufffd")
    assert count(broken) == count(whole)
    assert [value > 0 for value in features(broken)[:2]] == [True, True]
    for model in ("gpt-4.1-nano", "claude"):
        assert TokenEstimator(model).estimate([user(broken)]) > PER_REPLY


def test_learning_says_how_far_off_it_was() -> None:
    estimator = TokenEstimator("gpt-4.1-nano")
    messages = [user("hello")]
    assert estimator.learn(messages, estimator.estimate(messages)) == 0.0


def test_features_are_public_counts_and_the_shape() -> None:
    text = "日本 a, b!"
    found = dict(zip([*REFERENCES, *MEASURES], features(text), strict=True))
    assert [found[name] for name in REFERENCES] == [count(text, name) for name in REFERENCES]
    assert (found["kanji"], found["word"], found["sign"]) == (2, 2, 2)


def test_nothing_is_learnt_from_no_messages() -> None:
    estimator = TokenEstimator("claude")
    estimator.learn([], 12)
    assert estimator.calibration.seen == 0


def test_a_special_token_in_a_text_is_only_text() -> None:
    assert count("<|endoftext|>") > 1


@pytest.mark.contract("R52")
def test_one_reply_moves_an_estimate_far() -> None:
    estimator = TokenEstimator("claude-sonnet-4-5")
    text = "".join(KINDS.values()) * 5
    before = abs(estimator.count(text) / true_tokens(text) - 1)
    estimator.learn([user(text)], true_tokens(text) + 7)
    after = abs(estimator.count(text) / true_tokens(text) - 1)
    assert after < 0.02 < before
