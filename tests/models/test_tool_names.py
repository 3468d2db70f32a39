from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from evercontext.domain.model import ToolSpec
from evercontext.models.tool_names import WireNames, to_wire


def test_dots_become_two_underscores() -> None:
    assert to_wire("run.lint") == "run__lint"
    assert WireNames([ToolSpec("run.lint", "", {})]).back("run__lint") == "run.lint"


def test_a_name_nobody_offered_passes_through() -> None:
    names = WireNames([])
    assert names.back("what_ever") == "what_ever"
    assert names.there("a.b") == "a__b"


@given(st.lists(st.text(min_size=1), unique=True, max_size=20))
def test_every_name_comes_back(tools: list[str]) -> None:
    names = WireNames([ToolSpec(tool, "", {}) for tool in tools])
    wire = [names.there(tool) for tool in tools]
    assert [names.back(name) for name in wire] == tools
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in wire)
