from __future__ import annotations

import pytest

from evercontext.errors import Changed, EditMismatch
from evercontext.workspace.proposed_changes import Bounds, compose_edits, compose_whole, draft_of
from tests.workspace.test_read_ledger import TEXT, file

BOUNDS = Bounds(None, lambda: None)


@pytest.mark.contract("N28")
def test_edits_are_made_where_the_text_was_seen() -> None:
    """F7: two of four lines are enough for an edit of these."""
    edits = {"edits": [{"old": "2", "new": "two"}]}
    assert draft_of(edits, file(), ((2, 6),), compose_edits, BOUNDS).content == "1\ntwo\n3\n4\n"
    with pytest.raises(Changed, match="at line 2 of a, which was not shown yet"):
        draft_of(edits, file(), ((4, 8),), compose_edits, BOUNDS)


def test_a_placeholder_is_no_content() -> None:
    with pytest.raises(EditMismatch, match="placeholder"):
        compose_whole({"new_content": "# ... rest unchanged\n"}, file(TEXT), BOUNDS)
