"""What is opened to a command: the order of it."""

from __future__ import annotations

from evercontext.domain.tool import CommandAccess


def test_each_level_covers_those_below_it() -> None:
    sandbox, network, outside = CommandAccess
    assert outside.covers(network)
    assert network.covers(network)
    assert network.covers(sandbox)
    assert not sandbox.covers(network)
    assert not network.covers(outside)
