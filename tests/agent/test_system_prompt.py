from __future__ import annotations

import pytest

from evercontext.agent.system_prompt import MOST_CHANGED, MOST_FILES, Surroundings, brief, part_in
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


@pytest.mark.contract("N11")
def test_a_project_from_nothing_begins_with_questions() -> None:
    """A4."""
    for tree in ((), ("README.md", ".gitignore", "LICENSE")):
        asked = brief(Surroundings("a", tree, attended=True), "agent").content
        assert "Before you create a file, ask the user" in asked
        alone = brief(Surroundings("a", tree), "agent").content
        assert "nobody can answer questions" in alone
    assert "no code yet" not in brief(Surroundings("a", ("main.py",)), "agent").content


@pytest.mark.contract("N26")
def test_git_status_is_told_and_bounded() -> None:
    """A4."""
    status = "## main\n" + "".join(f" M f{n}.py\n" for n in range(MOST_CHANGED + 9))
    content = brief(Surroundings("a", ("f.py",), git_status=status), "agent").content
    assert "Git status when the work began:\n## main\n M f0.py" in content
    assert "… and 10 more" in content
    assert "Git status" not in brief(Surroundings("a", ("f.py",)), "agent").content
