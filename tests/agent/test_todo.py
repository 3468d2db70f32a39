from __future__ import annotations

from pathlib import Path

from evercontext import testing
from evercontext.agent.todo import NAME, lines, todo_tool
from evercontext.domain.tool import Caller, Door, Mode

PLAN = Caller("t", Door.CHAT, Mode.PLAN)


async def test_a_list_is_taken_shown_and_checked(tmp_path: Path) -> None:
    todos = [{"text": "読む", "status": "done"}, {"text": "write", "status": "in_progress"}]
    async with testing.house(tmp_path) as app:
        box = app.toolbox.along_with([todo_tool()])
        result = await box.call(NAME, {"todos": todos}, PLAN)
        assert result.text == "noted: 1 of 2 done"
        two = [{"text": "a", "status": "in_progress"}] * 2
        assert not (await box.call(NAME, {"todos": two}, PLAN)).ok
        odd = [{"text": "a", "status": "perhaps"}]
        assert not (await box.call(NAME, {"todos": odd}, PLAN)).ok
    assert lines({"todos": todos}) == ["[x] 読む", "[>] write"]
    assert lines({"todos": "nonsense"}) == []
