from __future__ import annotations

from pathlib import Path

from evercontext.domain.tool import Caller, Door, Mode
from evercontext.files.policy import agent_policy
from evercontext.index.code_search import CodeIndex
from evercontext.index.indexer import CHEAP
from evercontext.index.location import FOLDER
from evercontext.index.opener import IndexOpener
from evercontext.testing import git
from tests.index.world import SHOP, write
from tests.journeys.story import digest

TRACE = "00000000-0000-4000-8000-000000000003"
PLANNING = Caller(TRACE, Door.RUN, Mode.PLAN)
MANY = {f"many/part_{n}.py": f"def part_{n}(x):\n    return x\n" for n in range(CHEAP + 1)}


def _place(tree: Path, tmp_path: Path) -> IndexOpener:
    return IndexOpener(tree, tmp_path / "home", agent_policy(), use_vectors=False)


async def _first_hit(index: CodeIndex) -> str | None:
    answer = await index.search("charge a credit card")
    return answer.hits[0].path if answer.hits else None


async def _indexed(tree: Path, tmp_path: Path) -> None:
    place = _place(tree, tmp_path)
    await (await place()).update()
    await place.close()


async def test_plan_mode_takes_over_the_index_of_the_tree_and_follows_it(tmp_path: Path) -> None:
    """F1: nothing in the tree changes, the files that SQLite keeps beside it included."""
    tree = write(tmp_path / "tree", {**SHOP, **MANY})
    await _indexed(tree, tmp_path)
    before = digest(tree)
    place = _place(tree, tmp_path)
    index = await place(PLANNING)
    assert await _first_hit(index) == "shop/payment.py"
    assert not index.unknown
    await place.close()
    assert digest(tree) == before
    (tree / "shop/payment.py").rename(tree / "shop/bank.py")
    write(tree, {f"more/part_{n}.py": f"x = {n}\n" for n in range(CHEAP + 1)})
    await _indexed(tree, tmp_path)
    place = _place(tree, tmp_path)
    index = await place(PLANNING)
    assert await _first_hit(index) == "shop/bank.py"
    assert not index.unknown
    await place.close()


async def test_an_open_index_notices_that_it_was_replaced(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {**SHOP, **MANY})
    await _indexed(tree, tmp_path)
    first, second = _place(tree, tmp_path), _place(tree, tmp_path)
    open_before = await first(PLANNING)
    assert await _first_hit(open_before) == "shop/payment.py"
    (tree / "shop/payment.py").unlink()
    await _indexed(tree, tmp_path)
    await second(PLANNING)
    answer = await open_before.search("charge a credit card", fresh=False)
    assert all(hit.path != "shop/payment.py" for hit in answer.hits)
    await second.close()
    await first.close()


async def test_what_planning_indexed_is_not_indexed_again(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {**SHOP, **MANY})
    place = _place(tree, tmp_path)
    await (await place(PLANNING)).update()
    assert not (tree / FOLDER).exists()
    index = await place(Caller(TRACE, Door.RUN))
    assert await _first_hit(index) == "shop/payment.py"
    assert not index.unknown
    await place.close()


async def test_an_index_that_the_repository_brought_is_not_taken_over(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {**SHOP, **MANY})
    git(tree, "init", "-q")
    await _indexed(tree, tmp_path)
    git(tree, "add", "--force", f"{FOLDER}/index.db")
    place = _place(tree, tmp_path)
    index = await place(PLANNING)
    assert (await index.search("charge a credit card")).stale
    assert len(index.unknown) == len(SHOP) + len(MANY)
    await place.close()


async def test_a_damaged_index_of_the_tree_is_done_without(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", SHOP)
    (tree / FOLDER).mkdir()
    (tree / FOLDER / "index.db").write_bytes(b"no database at all" * 1000)
    place = _place(tree, tmp_path)
    assert await _first_hit(await place(PLANNING)) == "shop/payment.py"
    await place.close()
