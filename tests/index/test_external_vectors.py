from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from evercontext.domain.model import Embedded
from evercontext.errors import ModelUnavailable
from evercontext.index.code_search import CodeIndex
from evercontext.testing import git, tiny_repository
from tests.index.world import SHOP, write

MEANINGS = ["money bank charge card refund payment", "cart items basket buy", "route url web path"]


@dataclass
class Meanings:
    """An embedder of three meanings and a little noise; it counts what it was asked."""

    name: str = "meanings:3"
    width: int = 8
    local: bool = False
    away: bool = False
    texts: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    closed: bool = False

    def price(self, tokens: int) -> float | None:
        return tokens / 1000

    async def aclose(self) -> None:
        self.closed = True

    async def embed(self, texts: Sequence[str], *, question: bool = False) -> Embedded:
        if self.away:
            raise ModelUnavailable("meanings cannot be reached", fix="Start it")
        (self.questions if question else self.texts).extend(texts)
        return Embedded([self._one(text) for text in texts], tokens=sum(map(len, texts)))

    def _one(self, text: str) -> list[float]:
        words = text.lower()
        seen = [float(sum(word in words for word in m.split())) for m in MEANINGS]
        noise = hashlib.sha256(text.encode()).digest()[: self.width - len(MEANINGS)]
        return [*seen, *(b / 2550 for b in noise)]


@asynccontextmanager
async def opened_with(root: Path, embedder: Meanings) -> AsyncIterator[CodeIndex]:
    index = await CodeIndex.open(root, embedder=embedder)
    try:
        yield index
    finally:
        await index.close()


@pytest.mark.contract("E38")
async def test_an_embedder_ranks_and_its_cost_is_told(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    embedder = Meanings()
    async with opened_with(tmp_path, embedder) as index:
        report = await index.update()
        assert report.by == "meanings:3"
        assert report.requested == len(embedder.texts) > len(SHOP)
        assert report.tokens == sum(map(len, embedder.texts))
        assert report.cost == pytest.approx(report.tokens / 1000)
        answer = await index.search("money given to the bank")
        assert answer.hits[0].path == "shop/payment.py"
        assert "meaning" in answer.hits[0].reasons
        assert answer.note is None
        assert embedder.questions == ["money given to the bank"]
        assert (await index.update()).requested == 0
    assert embedder.closed


@pytest.mark.contract("E38", "E39")
async def test_only_unseen_chunks_are_paid_for(tmp_path: Path) -> None:
    tree = tiny_repository(tmp_path, SHOP)
    embedder = Meanings()
    async with opened_with(tree, embedder) as index:
        await index.update()
        embedder.texts.clear()
        git(tree, "mv", "shop", "store")
        moved = await index.update()
        assert (moved.renamed, moved.requested, embedder.texts) == (2, 0, [])
        file = tree / "store/payment.py"
        file.write_text(
            file.read_text("utf-8") + "\n\ndef tip(amount):\n    return amount\n", "utf-8"
        )
        changed = await index.update()
        assert changed.requested < 4
        assert not any("class PaymentGateway" in text for text in embedder.texts)


async def test_another_embedder_embeds_anew_and_costs_no_analysis(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with opened_with(tmp_path, Meanings()) as index:
        first = await index.update()
    longer = Meanings(name="meanings:longer", width=12)
    async with opened_with(tmp_path, longer) as index:
        before = await index.search("money for the bank")
        assert before.note is not None
        assert "meanings:longer" in before.note
        assert before.hits[0].path == "shop/payment.py"
        second = await index.update()
        assert (second.touched, second.requested) == (0, first.requested)
        after = await index.search("money for the bank")
        assert (after.note, after.hits[0].path) == (None, "shop/payment.py")


async def test_who_is_away_is_done_without_and_said_so(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    embedder = Meanings(away=True)
    async with opened_with(tmp_path, embedder) as index:
        report = await index.update()
        assert report.added == len(SHOP)
        assert report.trouble == "meanings cannot be reached. Start it"
        assert (await index.search("charge a card")).hits[0].path == "shop/payment.py"
        embedder.away = False
        await index.update()
        assert (await index.search("charge a card")).note is None
        embedder.away = True
        answer = await index.search("refund the money")
        assert answer.hits[0].path == "shop/payment.py"
        assert answer.note == "meanings cannot be reached: ranked without it"


async def test_no_secret_is_sent(tmp_path: Path) -> None:
    canary = "sk-" + "c4n4ry" * 6
    write(
        tmp_path, {**SHOP, ".env": canary, "conf.py": f"KEY = '{canary}'\npassword = '{canary}'\n"}
    )
    embedder = Meanings()
    async with opened_with(tmp_path, embedder) as index:
        await index.update()
        await index.search(f"where is {canary} used")
    sent = "\n".join([*embedder.texts, *embedder.questions])
    assert "KEY = " in sent
    assert "c4n4ry" not in sent


async def test_a_stopped_embedding_goes_on_where_it_was(tmp_path: Path) -> None:
    write(tmp_path, {f"m{i}.py": f"def work_{i}():\n    return {i}\n" for i in range(200)})

    class Tiring(Meanings):
        async def embed(self, texts: Sequence[str], *, question: bool = False) -> Embedded:
            if len(self.texts) > 100:
                raise asyncio.CancelledError
            return await super().embed(texts, question=question)

    tired = Tiring()
    index = await CodeIndex.open(tmp_path, embedder=tired)
    with pytest.raises(asyncio.CancelledError):
        await index.update()
    await index.close()
    fresh = Meanings()
    async with opened_with(tmp_path, fresh) as again:
        report = await again.update()
    assert report.requested == 400 - len(tired.texts)
    assert not set(fresh.texts) & set(tired.texts)


async def test_a_model_that_changed_its_length_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with opened_with(tmp_path, Meanings()) as index:
        await index.update()
    async with opened_with(tmp_path, Meanings(width=9)) as index:
        answer = await index.search("charge a card")
        assert answer.hits
        assert "another length" in (answer.note or "")
