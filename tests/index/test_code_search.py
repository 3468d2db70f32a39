from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from evercontext.errors import UsageError
from evercontext.index.code_search import CodeIndex
from evercontext.index.indexer import CHEAP
from tests.index.world import SHOP, opened, write


@pytest.mark.contract("E5", "E37")
async def test_a_question_finds_its_function(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as index:
        await index.update()
        hit = (await index.search("charge a credit card")).hits[0]
    assert hit.path == "shop/payment.py"
    assert "def charge" in hit.text
    assert hit.symbol == "PaymentGateway.charge"
    assert hit.key == f"shop/payment.py#L{hit.start_line}-L{hit.end_line}"
    assert 0 < hit.score <= 1
    assert hit.reasons


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("PaymentGateway", "shop/payment.py"),
        ("total_price", "shop/cart.py"),
        ("how are routes matched to a url", "web/routes.ts"),
        ("test of the cart total", "tests/test_cart.py"),
    ],
)
async def test_definitions_come_before_mentions(tmp_path: Path, query: str, path: str) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as index:
        await index.update()
        assert (await index.search(query)).hits[0].path == path


async def test_one_file_does_not_fill_the_page(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as index:
        await index.update()
        hits = (await index.search("cart price card", 3)).hits
    assert len({hit.path for hit in hits}) == 3


async def test_a_prefix_limits_the_paths(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as index:
        await index.update()
        hits = (await index.search("payment card charge", 10, "web/")).hits
    assert {hit.path for hit in hits} <= {"web/routes.ts"}


@pytest.mark.contract("E5")
async def test_a_few_changes_are_seen_by_the_next_search(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as index:
        await index.search("cart")
        write(tmp_path, {"shop/voucher.py": "def redeem_voucher(code):\n    return code\n"})
        (tmp_path / "shop/payment.py").unlink()
        index._looked = 0.0
        answer = await index.search("redeem voucher")
        assert answer.hits[0].path == "shop/voucher.py"
        assert not answer.stale
        assert "shop/payment.py" not in {h.path for h in (await index.search("charge", 50)).hits}


async def test_many_changes_are_left_and_the_answer_says_so(tmp_path: Path) -> None:
    write(tmp_path, {f"m{i}.py": f"def work_{i}():\n    pass\n" for i in range(CHEAP + 1)})
    async with opened(tmp_path) as index:
        answer = await index.search("work")
        assert answer.stale
        assert answer.hits == ()
        await index.update()
        again = await index.search("work_7")
        assert not again.stale
        assert again.hits[0].path == "m7.py"


async def test_files_indexed_right_after_they_were_written_are_not_many_changes(
    tmp_path: Path,
) -> None:
    write(tmp_path, {f"m{i}.py": f"def work_{i}():\n    pass\n" for i in range(CHEAP * 3)})
    async with opened(tmp_path) as index:
        await index.update()
        # As a machine leaves them that writes and indexes all within one clock tick.
        await index.table.touch(
            [replace(row, modified=0) for row in (await index.table.rows()).values()]
        )
        write(tmp_path, {"m5.py": "def giraffe():\n    pass\n"})
        answer = await index.search("giraffe")
        assert [hit.path for hit in answer.hits] == ["m5.py"]
        assert not answer.stale


async def test_a_further_chunk_with_the_word_stands_before_files_without_it(
    tmp_path: Path,
) -> None:
    write(
        tmp_path,
        {
            "accounts.py": 'def hash_password(password):\n    """A slow hash."""\n'
            "    return scrypt(password)\n\n\n"
            'def sign_in(user, password):\n    """True if it is the password."""\n'
            "    return user.digest == hash_password(password)\n",
            "discount.py": "def discount(price):\n    return price * 9 // 10\n",
        },
    )
    index = await CodeIndex.open(tmp_path)
    try:
        hits = (await index.search("password")).hits
    finally:
        await index.close()
    assert [hit.symbol for hit in hits][:2] == ["hash_password", "sign_in"]


async def test_what_another_process_indexed_is_found(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as reader, opened(tmp_path) as writer:
        await writer.update()
        assert (await reader.search("refund", fresh=False)).hits[0].path == "shop/payment.py"
        write(tmp_path, {"shop/payment.py": "def pay_back():\n    pass\n"})
        await writer.update()
        found = await reader.search("pay_back", fresh=False)
        assert found.hits[0].path == "shop/payment.py"
        assert found.hits[0].symbol == "pay_back"


async def test_updates_leave_no_trace_in_the_scores(tmp_path: Path) -> None:
    """A corpus that followed changes ranks like one that was loaded afresh."""
    write(tmp_path, SHOP)
    async with opened(tmp_path) as old:
        await old.update()
        await old.search("cart")
        for i in range(5):
            write(tmp_path, {"shop/cart.py": SHOP["shop/cart.py"] + f"\n\ndef extra{i}(): ...\n"})
            await old.update()
        write(tmp_path, {"new.py": "class Cart2:\n    pass\n"})
        await old.update()
        queries = ("cart total price", "extra4", "Router", "charge card")
        followed = [[(h.key, h.score) for h in (await old.search(q)).hits] for q in queries]
    async with opened(tmp_path) as new:
        loaded = [[(h.key, h.score) for h in (await new.search(q)).hits] for q in queries]
    assert followed == loaded


@pytest.mark.parametrize("query", ["", "   "])
async def test_bad_questions_are_refused(tmp_path: Path, query: str) -> None:
    async with opened(tmp_path) as index:
        with pytest.raises(UsageError):
            await index.search(query)


@pytest.mark.parametrize(
    "query", ['"', "NEAR(", "a AND OR", "*", "'; DROP TABLE files", "🙂", "？"]
)
async def test_odd_questions_are_only_questions(tmp_path: Path, query: str) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as index:
        await index.update()
        assert isinstance((await index.search(query)).hits, tuple)


async def test_an_empty_tree_answers_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        assert (await index.search("anything")).hits == ()


async def test_explanations_name_what_counted(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as index:
        await index.update()
        hit = (await index.search("PaymentGateway", explain=True)).hits[0]
    assert dict(hit.signals)["symbol_defined"] > 0
    assert "defines the symbol" in hit.reasons


@pytest.mark.contract("E38")
async def test_meaning_joins_in_where_vectors_are_packaged(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    index = await CodeIndex.open(tmp_path)
    try:
        report = await index.update()
        assert report.embedded > 0
        hit = (await index.search("reimbursement", 1)).hits[0]
        assert hit.path == "shop/payment.py"
        assert "meaning" in hit.reasons
    finally:
        await index.close()


@pytest.mark.parametrize("query", ["refnud", "PaymentGatway", "chrage a creditt card"])
async def test_one_wrong_letter_finds_what_the_right_one_does(tmp_path: Path, query: str) -> None:
    """25.4: it found nothing, or something else."""
    write(tmp_path, SHOP)
    async with opened(tmp_path) as index:
        assert (await index.search(query, 1)).hits[0].path == "shop/payment.py"


_LOADED = """
import asyncio, pathlib, sys
from evercontext.index.partial_search import ask
from evercontext.index.code_search import CodeIndex

async def search(tree, folder):
    index = await CodeIndex.open(tree, folder=folder)
    hits = (await ask(index, "total price")).hits
    await index.close()
    return hits

assert asyncio.run(search(*map(pathlib.Path, sys.argv[1:])))
print(*(name for name in sys.modules if name.startswith("evercontext.")))
"""
NEEDED = {"domain", "errors", "events", "files", "index", "process", "renamed", "retrieval"}
NEEDED |= {"settings", "storage"}


def test_a_search_loads_no_package_that_it_does_not_need(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", SHOP)
    (tmp_path / "index").mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", _LOADED, tree, tmp_path / "index"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = ended.stdout.split()
    assert {name.split(".")[1] for name in loaded} <= NEEDED
    assert len(loaded) <= 105
