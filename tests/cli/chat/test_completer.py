from __future__ import annotations

from pathlib import Path

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from evercontext.cli.chat.completer import ChatCompleter


def offered(completer: ChatCompleter, text: str) -> list[str]:
    found = completer.get_completions(Document(text), CompleteEvent())
    return [completion.text for completion in found]


def test_commands_and_files(tmp_path: Path) -> None:
    for name in ("src/main.py", "src/domain/order.py", "docs/手引き.md", ".git/config"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    completer = ChatCompleter(tmp_path, lambda: {"model": "", "mode": "", "plan": ""})
    assert offered(completer, "/mo") == ["/model", "/mode"]
    assert offered(completer, "say /mo") == []
    assert offered(completer, "look at @main") == ["src/main.py", "src/domain/order.py"]
    assert offered(completer, "@sdo") == ["src/domain/order.py"]
    assert offered(completer, "@手") == ["docs/手引き.md"]
    assert offered(completer, "@config") == []
    assert offered(completer, "mail me@main") == []
    assert offered(completer, "plain") == []
