from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.index.code_search import Answer, Hit
from evercontext.index.token_budget import fit, signature
from tests.index.world import SHOP, opened, write


def _hit(number: int, lines: int = 10) -> Hit:
    body = "\n".join(f"    x = {line}" for line in range(lines))
    name = f"work{number}"
    text = f"# about it\ndef {name}(a, b):\n{body}"
    return Hit(f"m{number}.py", 1, lines + 2, text, 0.5, f"Task.{name}", ())


def _count(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize("budget", [0, 8, 30, 60, 120, 10_000])
def test_results_never_take_more_than_the_budget(budget: int) -> None:
    hits = [_hit(number, 5 * number) for number in range(6)]
    fitted = fit(Answer(tuple(hits)), budget, _count).hits
    shown = sum(
        _count(f"{h.path}:{h.start_line}-{h.end_line} ({h.symbol})\n{h.text}") for h in fitted
    )
    assert shown <= budget
    assert [h.path for h in fitted] == [h.path for h in hits if h.path in {f.path for f in fitted}]


def test_signatures_come_first_and_then_the_best_texts() -> None:
    hits = (_hit(1), _hit(2), _hit(3))
    fitted = fit(Answer(hits), 60, _count).hits
    assert [hit.is_shortened for hit in fitted] == [False, True, True]
    assert fitted[1].text == "def work2(a, b):"
    assert fitted[0] == hits[0]


def test_a_piece_without_a_name_shows_its_first_line() -> None:
    assert signature(Hit("a.md", 1, 2, "\n# Title\ntext", 0.1, None, ())) == "# Title"


async def test_a_search_within_a_budget(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as index:
        await index.update()
        answer = await index.search("add_item to the cart")
    short = fit(answer, 40, _count)
    assert short.hits[0].path == answer.hits[0].path
    assert len(short.hits) <= len(answer.hits)
