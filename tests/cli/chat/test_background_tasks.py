from __future__ import annotations

import pytest

from evercontext.cli.chat.background_tasks import is_about_background


@pytest.mark.parametrize("argument", ["", "1", "#2", "stop 3"])
def test_a_number_is_about_a_background_command(argument: str) -> None:
    """A7."""
    assert is_about_background(argument)


@pytest.mark.parametrize("argument", ["stop the server", "plan.json", "3 tests"])
def test_anything_else_is_a_goal(argument: str) -> None:
    assert not is_about_background(argument)
