from __future__ import annotations

import json
from pathlib import Path

import pytest

from evercontext.index.commit_index import CommittedTree
from evercontext.index.commits import Commits
from evercontext.index.source_reader import Unfit
from evercontext.testing import git, tiny_repository
from tests.cli.command import evercontext
from tests.index.world import SHOP, opened, write


@pytest.mark.slow
@pytest.mark.contract("E6")
def test_the_command_searches_the_last_commit(tmp_path: Path) -> None:
    tree = tiny_repository(tmp_path / "tree", SHOP)
    write(tree, {"a.py": "def as_staged(): pass\n"})
    git(tree, "add", "a.py")
    write(tree, {"a.py": "def as_on_disk(): pass\n"})
    git(tree, "commit", "-qm", "only what was staged")
    (tree / "shop/payment.py").unlink()
    there = evercontext("search", "as_staged", "--committed", cwd=tree)
    assert "def as_staged" in there.out, there.err
    gone = evercontext("search", "refund", "--committed", "--json", "-k", "1", cwd=tree)
    assert json.loads(gone.out)["chunks"][0]["path"] == "shop/payment.py"
    assert "def as_staged" not in evercontext("search", "as_staged", cwd=tree).out
    refused = evercontext("search", "x", "--committed", cwd=tree, env={"EC_RAG_URL": "http://h:1"})
    assert refused.code == 64


async def test_what_was_not_fetched_cannot_be_shown(tmp_path: Path) -> None:
    tree = tiny_repository(tmp_path, SHOP)
    async with opened(tree) as index:
        await index.search_commit("cart")
        commit = CommittedTree(index.table, index.indexer.reader, Commits(tree))
        corpus = await commit.corpus(None)
        assert corpus.live_files == len(SHOP)
        await commit.fetch(["shop/cart.py"], largest=10)
        with pytest.raises(Unfit, match="not in the repository"):
            commit.show("shop/cart.py", 1, 2)
        await commit.fetch(["shop/cart.py"], largest=10_000)
        assert commit.show("shop/cart.py", 4, 4) == "class Cart:"
