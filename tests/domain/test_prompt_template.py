from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.domain.prompt_template import fill

HOSTILE = [
    "{{name}}",
    "{{document}}",
    "{{{{name}}}}",
    "{{na{{name}}me}}",
    "{name}",
    "{",
    "}}",
    "{{",
    "%s",
    "{0}",
    "{document.__class__}",
    r"\1 \g<0> \\",
    "$name ${name}",
    "{{名前}}",
    "\0{{name}}\n",
]


@pytest.mark.contract("L18")
@pytest.mark.case(108)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_a_fact_brings_along_is_never_filled(hostile: str) -> None:
    facts = {"name": "Mallory", "document": hostile}
    assert fill("<{{document}}> by {{name}}", facts) == f"<{hostile}> by Mallory"
    assert fill("{{name}}: {{document}}{{document}}", facts) == f"Mallory: {hostile}{hostile}"


def test_a_place_without_a_fact_and_other_braces_stay() -> None:
    template = '{"a": {"b": 1}} {{unknown}} {{Upper}} {{ spaced }} {single} {{'
    assert fill(template, {"b": "x", "single": "x"}) == template


@pytest.mark.contract("L18")
@pytest.mark.case(108)
@given(st.text(alphabet="{}abc_ \n", max_size=40), st.text(alphabet="{}abc_ \n", max_size=40))
def test_any_facts_appear_literally_each_in_its_place(one: str, two: str) -> None:
    assert fill("[{{a}}][{{b}}]", {"a": one, "b": two}) == f"[{one}][{two}]"
