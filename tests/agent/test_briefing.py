from __future__ import annotations

import pytest

from evercontext.agent.briefing import MOST_FILES, Surroundings, brief, part_in
from evercontext.domain.tool import Mode


@pytest.mark.contract("E34", "N26")
def test_the_model_is_told_the_root_the_tree_and_the_rules() -> None:
    message = brief(Surroundings("app", ("main.py", "日本語.md"), "Use tabs."), "agent")
    assert message.role == "system"
    assert "not `app/main.py`" in message.content
    assert "- 日本語.md" in message.content
    assert "Use tabs." in message.content
    assert "Mode: agent" in message.content


def test_a_long_tree_is_cut_and_says_so() -> None:
    content = brief(Surroundings("a", [f"f{n}" for n in range(MOST_FILES + 3)]), "agent").content
    assert "… and 3 more" in content


def test_braces_in_a_fact_are_not_filled_again() -> None:
    here = Surroundings("{{tree}}", ("{{instructions}}", "a{", "{tree}"), "{{date}}")
    content = brief(here, "agent").content
    assert "Project root: {{tree}}" in content
    assert "- {{instructions}}\n- a{\n- {tree}" in content
    assert content.endswith("{{date}}")
    assert content.count("{{") == 2 + content.count("{{tree}}")


@pytest.mark.contract("N27")
def test_plan_mode_has_a_prompt_of_its_own() -> None:
    planning = brief(Surroundings("a"), part_in(Mode.PLAN), Mode.PLAN).content
    assert "You change nothing" in planning
    assert "Mode: plan" in planning
    assert planning != brief(Surroundings("a"), part_in(Mode.AGENT)).content
