"""The vectors that ship: the real packaged file."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from evercontext.retrieval import static_vectors
from evercontext.retrieval.static_vectors import (
    Pieces,
    StaticVectors,
    load_static_vectors,
    root_counts,
    words_of,
)

FILE = Path(str(files("evercontext.retrieval") / "data" / "vectors.bin"))
FUNCTIONS = (
    "def read_settings(path):\n    return tomllib.loads(path.read_text())",
    "def send_mail(recipient, subject, body):\n    smtp.sendmail(sender, recipient, body)",
    "def delete_user(db, user_id):\n    db.execute('DELETE FROM users WHERE id = ?', user_id)",
    "async function retryRequest(url, attempts) { await sleep(backoff); return fetch(url) }",
    "func (p *Pool) Acquire() *Conn { return <-p.connections }",
)
TOOLS = (
    "get_forecast: weather forecast for a city",
    "create_event: add a meeting to the calendar",
    "search_files: find files by name",
    "create_pull_request: open a pull request",
)


@pytest.fixture(scope="module")
def model() -> StaticVectors:
    found = load_static_vectors()
    assert found is not None
    return found


def best(model: StaticVectors, question: str, texts: tuple[str, ...]) -> int:
    scores = model.encode(texts) @ model.encode_questions([question])[0]
    return int(np.argmax(scores))


def test_our_vectors_are_the_default(model: StaticVectors) -> None:
    assert load_static_vectors() is model
    assert model.dimensions == 256
    assert model.name.startswith("evercontext-")


def test_the_file_stays_small() -> None:
    assert FILE.stat().st_size <= 12_000_000


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("load the configuration file", 0),
        ("notify someone by email", 1),
        ("remove an account from the database", 2),
        ("try again after a network failure", 3),
        ("take a connection from the pool", 4),
    ],
)
def test_english_questions_find_functions(model: StaticVectors, question: str, answer: int) -> None:
    assert best(model, question, FUNCTIONS) == answer


@pytest.mark.parametrize(
    ("question", "texts", "answer"),
    [
        ("設定ファイルを読み込む", FUNCTIONS, 0),
        ("メールを送信する", FUNCTIONS, 1),
        ("ユーザーを削除する", FUNCTIONS, 2),
        ("明日の天気予報", TOOLS, 0),
        ("カレンダーに予定を追加", TOOLS, 1),
        ("ファイルを検索", TOOLS, 2),
        ("プルリクエストを作る", TOOLS, 3),
    ],
)
def test_japanese_questions_find_english_texts(
    model: StaticVectors, question: str, texts: tuple[str, ...], answer: int
) -> None:
    assert best(model, question, texts) == answer


def test_width_and_composition_make_no_difference(model: StaticVectors) -> None:
    composed, half, decomposed = model.encode(
        ["データベース", "ﾃﾞｰﾀﾍﾞｰｽ", "テ\u3099ータヘ\u3099ース"]
    )
    np.testing.assert_allclose(composed, half)
    np.testing.assert_allclose(composed, decomposed)
    np.testing.assert_allclose(*model.encode(["HTTP server", "ＨＴＴＰ　ｓｅｒｖｅｒ"]))


def test_identifier_styles_make_no_difference(model: StaticVectors) -> None:
    camel, snake = model.encode(["parseHttpHeader", "parse_http_header"])
    np.testing.assert_allclose(camel, snake, rtol=1e-5)


def test_rows_and_texts_agree(model: StaticVectors) -> None:
    text = "for key in keys: total += weights[key]"
    counts = root_counts(text)
    summed = np.array(list(counts.values()), np.float32) @ model.run_vectors(counts)
    np.testing.assert_allclose(summed / np.linalg.norm(summed), model.encode([text])[0], rtol=1e-4)


def test_forgetting_runs_changes_no_vector(
    model: StaticVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["for key in keys: total += weights[key]", "send an email to a friend"]
    before = model.encode(texts)
    monkeypatch.setattr(static_vectors, "_MOST_RUNS", 3)
    np.testing.assert_array_equal(model.encode([*texts, *texts]), [*before, *before])


def test_nothing_known_is_all_zero(model: StaticVectors) -> None:
    assert not model.encode(["", "()[]{} … 123456"]).any()
    assert not model.pool({}).any()
    assert not model.encode_questions(["!!"]).any()


def test_hostile_text_is_only_text(model: StaticVectors) -> None:
    vectors = model.encode(["a" * 100_000, "\x00\ud7ff\uffff", "語" * 50_000, "\U0001f600 " * 1000])
    assert np.isfinite(vectors).all()


def test_japanese_is_cut_where_the_script_changes() -> None:
    assert words_of("設定ファイルを読み込む") == ["設定", "ファイル", "を", "読み", "込む"]


def test_words_are_cut_into_the_likeliest_pieces() -> None:
    pieces = Pieces(["web", "socket", "webs", "ocket", "s"], [-3.0, -3.0, -8.0, -9.0, -5.0])
    assert pieces.cut("websocket") == [0, 1]
    assert pieces.cut("web") == [0]
    assert pieces.cut("qqsq") == [4]
    assert pieces.cut("2024") == []
    assert pieces.cut("вебсокет") == []
    assert pieces.cut("вебsocket") == [1]


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "vectors.bin"
    broken.write_bytes(b"not vectors at all")
    with pytest.raises(ValueError, match="install the package again"):
        StaticVectors(broken)


def test_loading_needs_no_network_library() -> None:
    code = (
        "import sys; from evercontext.retrieval.static_vectors import load_static_vectors as load;"
        " load().encode(['x']);"
        " print([m for m in ('torch', 'wordllama', 'tokenizers', 'requests') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
