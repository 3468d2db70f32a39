from __future__ import annotations

import io

from evercontext.index.analyse_text import analyse
from evercontext.index.analysis import pack
from evercontext.index.worker_process import framed, number, serve


def test_texts_are_answered_in_their_order() -> None:
    texts = [("python", "def one(): pass\n"), ("text", "認証\n"), ("python", "")]
    source = io.BytesIO(b"".join(framed(language, text) for language, text in texts))
    target = io.BytesIO()
    assert serve(source, target, "", 60.0) == 0
    wanted = [pack(analyse(text, language)) for language, text in texts]
    assert target.getvalue() == b"".join(number(len(data)) + data for data in wanted)


def test_a_worker_with_other_vectors_does_not_answer() -> None:
    assert serve(io.BytesIO(), io.BytesIO(), "vectors of another house", 60.0) == 1
