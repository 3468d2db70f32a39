from __future__ import annotations

from pathlib import Path

from evercontext import testing
from evercontext.agent.rewind import forget_from, turns
from evercontext.app.conversations import open_conversation


async def test_going_back_to_before_a_turn(tmp_path: Path) -> None:
    said = [{"text": "one"}, {"text": "two"}, {"text": "three"}]
    async with testing.house(tmp_path) as app:
        model = testing.write_script(tmp_path / "s.jsonl", said)
        talk = await open_conversation(app, model_name=model)
        for text in ("a", "b"):
            await talk.turn(text)
        newest, oldest = await turns(talk)
        assert (newest.text, oldest.text) == ("b", "a")
        assert await forget_from(talk, newest) == 2
        assert [message.content for message in talk.history] == ["a", "one"]
        await talk.turn("c")
        assert [message.content for message in talk.history] == ["a", "one", "c", "three"]
        await talk.end()


async def test_a_handover_of_what_is_taken_back_goes_too(tmp_path: Path) -> None:
    said = [{"text": f"answer {n} " + "long " * 200} for n in range(6)]
    async with testing.house(tmp_path) as app:
        model = testing.write_script(
            tmp_path / "s.jsonl", [*said, {"role": "compaction", "text": "short"}]
        )
        talk = await open_conversation(app, model_name=model)
        for n in range(6):
            await talk.turn(f"question {n}")
        await talk.compact()
        assert "short" in talk.history[0].content
        oldest = (await turns(talk))[-1]
        await forget_from(talk, oldest)
        assert talk.history == []
        await talk.end()
