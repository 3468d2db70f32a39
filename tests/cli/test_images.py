"""A7: pictures by @file and by path; sent to models that see, refused for those that do not."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path

import pytest

from evercontext.cli.images import MOST_IMAGES, images_in
from evercontext.errors import InvalidArguments
from tests.cli.command import EVERCONTEXT, evercontext
from tests.files.test_images import PNG
from tests.journeys.story import script
from tests.journeys.test_chat_openai import text
from tests.models.wire_server import wire_server


async def test_a_message_names_pictures_in_several_ways(tmp_path: Path) -> None:
    root, other = tmp_path / "project", tmp_path / "my shots"
    root.mkdir()
    other.mkdir()
    for path in (root / "a.png", root / "b.PNG", other / "c d.png", other / "e.png"):
        path.write_bytes(PNG)
    dragged = str(other / "c d.png").replace(" ", "\\ ")
    words = f"see @a.png, @b.PNG. {dragged} '{other}/e.png' @none.png x@a.png /etc/hosts"
    assert [image.name for image in await images_in(words, root)] == [
        "a.png",
        "b.PNG",
        "c d.png",
        "e.png",
    ]
    for number in range(MOST_IMAGES + 1):
        (root / f"n{number}.png").write_bytes(PNG)
    with pytest.raises(InvalidArguments):
        await images_in(" ".join(f"@n{n}.png" for n in range(MOST_IMAGES + 1)), root)


async def test_a_picture_goes_out_with_its_message(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(PNG)
    async with wire_server() as server:
        server.will(text("A button."), text("As I said."))
        child = await asyncio.create_subprocess_exec(
            EVERCONTEXT,
            "chat",
            "--yes",
            "-m",
            "gpt-4.1-mini",
            cwd=tmp_path,
            env={**os.environ, "OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{server.url}/v1"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await asyncio.wait_for(
            child.communicate(b"what is in @shot.png ?\nand again?\n"), 90
        )
    assert child.returncode == 0, out.decode()
    requests = [one.body for one in server.asked if one.path.endswith("/chat/completions")]
    encoded = base64.b64encode(PNG).decode()
    for request in requests:
        sent = next(m for m in request["messages"] if m["role"] == "user")["content"]
        assert sent[0]["text"].startswith("what is in @shot.png")
        assert sent[1]["image_url"]["url"] == f"data:image/png;base64,{encoded}"


def test_a_model_that_does_not_see_says_so(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(PNG)
    model = script(tmp_path / "s.jsonl", {"text": "never"})
    done = evercontext("chat", "-m", model, cwd=tmp_path, stdin="look at @shot.png\n")
    assert "does not see pictures: shot.png" in done.out
    done = evercontext("run", "-m", model, "-i", "shot.png", "-t", "look", cwd=tmp_path)
    assert done.code != 0
    assert "does not see pictures: shot.png" in done.out + done.err
