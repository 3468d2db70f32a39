from __future__ import annotations

import re

import pytest

from evercontext.agent.task_limits import LimitHit
from evercontext.domain.event import Limit
from evercontext.settings import rows


@pytest.mark.parametrize("kind", ["turns", "time", "tokens", "money"])
def test_what_raises_a_limit_works_at_every_entrance(kind: str) -> None:
    """In the chat and in an editor there is no --max-turns; a setting is there for all of them."""
    hit = LimitHit(Limit(kind=kind, used=2, allowed=1))
    variables = re.findall(r"EC_[A-Z_]+", str(hit))
    assert variables
    assert set(variables) <= {str(row.metadata["env"]) for row in rows()}
