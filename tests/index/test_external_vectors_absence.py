from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from evercontext.domain.model import Embedded
from evercontext.index.external_vectors import EmbedderVectors
from evercontext.index.lease import EMBEDDING, IndexLease
from evercontext.index.location import FOLDER
from tests.index.test_external_vectors import Meanings, opened_with
from tests.index.world import SHOP, write


async def test_two_processes_do_not_pay_for_the_same_chunks(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    embedder = Meanings()
    async with opened_with(tmp_path, embedder) as index:
        async with IndexLease(tmp_path / FOLDER, EMBEDDING).hold():
            report = await index.update()
            assert (report.added, report.requested) == (len(SHOP), 0)
            assert report.trouble == "another process is embedding this tree"
        assert (await index.update()).requested > 0


async def test_searches_go_on_while_chunks_are_embedded(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    found: list[str] = []

    class Asked(Meanings):
        async def embed(self, texts: Sequence[str], *, question: bool = False) -> Embedded:
            if not question and not found:
                found.append((await index.search("charge a card")).hits[0].path)
            return await super().embed(texts, question=question)

    async with opened_with(tmp_path, Asked()) as index:
        await index.update()
    assert found == ["shop/payment.py"]


async def test_an_embedder_that_failed_is_left_in_peace_for_a_while(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    embedder = Meanings()
    async with opened_with(tmp_path, embedder) as index:
        await index.update()
        embedder.away = True
        assert (await index.search("cart")).note is not None
        embedder.away = False
        embedder.questions.clear()
        assert (await index.search("basket")).note is not None
        assert embedder.questions == []
        assert isinstance(index._embedder_vectors, EmbedderVectors)
        index._embedder_vectors._away_until = 0.0
        assert (await index.search("basket")).note is None
        assert embedder.questions == ["basket"]


@pytest.mark.contract("E38")
async def test_japanese_goes_to_the_embedder_as_it_was_asked(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    embedder = Meanings()
    async with opened_with(tmp_path, embedder) as index:
        await index.update()
        await index.search("支払い payment を返金する")
    assert embedder.questions == ["支払い payment を返金する"]
