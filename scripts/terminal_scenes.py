"""Play the scenes that ``terminal_pictures.py`` draws."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

Answer = str | list[dict[str, Any]]


class Hold(str):
    """Words that are sent slowly and never end, until the picture is taken."""

    __slots__ = ()


class Model(Protocol):
    """What answers."""

    answers: list[Answer]


class Terminal(Protocol):
    """What is typed into and looked at."""

    language: str

    @property
    def model(self) -> Model:
        """Return what answers."""
        ...

    def start(self, *arguments: str, program: str = ..., **environment: str) -> None:
        """Start the command in the project."""

    def ready(self) -> None:
        """Wait for the prompt."""

    def sees(self, *texts: str) -> None:
        """Wait until all of these are on the screen."""

    def says(self, text: str) -> None:
        """Send one message."""

    def presses(self, *keys: str) -> None:
        """Press keys."""

    def screen(self, *, colours: bool = True) -> str:
        """Return what the terminal shows."""

    def settled(self) -> str:
        """Return the screen once it no longer changes."""


def call(name: str, **arguments: Any) -> list[dict[str, Any]]:
    """Return an answer of the model that calls one tool."""
    return [{"name": name, "arguments": arguments}]


def first_run(terminal: Terminal) -> str:
    """No model yet: a menu."""
    terminal.start("chat", OPENAI_API_KEY="", OPENAI_BASE_URL="", EC_MODEL_NAME="")
    terminal.sees("Ollama", "4")
    return terminal.settled()


def streaming(terminal: Terminal) -> str:
    """An answer while it is written."""
    terminal.model.answers = [Hold(_LONG_ANSWER[terminal.language])]
    terminal.start("chat")
    terminal.ready()
    terminal.says(_word(terminal, "How does the parser work?", "パーサーの仕組みを説明して"))
    terminal.sees("tokenize(source)", "merge")
    time.sleep(0.6)
    return terminal.screen()


def approval(terminal: Terminal) -> str:
    """A change of many lines, page by page."""
    text = _MODULE.replace("return left", "return int(left)") + _MORE
    terminal.model.answers = [
        call("write_file", path="src/parser.py", content=text, mode="overwrite"),
        "Done.",
    ]
    terminal.start("chat")
    terminal.ready()
    terminal.says(_word(terminal, "Add the other operators", "残りの演算子を追加して"))
    terminal.sees("1", "/", ">", "src/parser.py")
    return terminal.settled()


def approved(terminal: Terminal) -> str:
    """The end of the same change: the answers, and what follows."""
    approval(terminal)
    while "1/2/3/4" not in terminal.screen(colours=False):
        terminal.presses("Space")
        time.sleep(0.5)
    return terminal.settled()


def red_check(terminal: Terminal) -> str:
    """The agent says done, its test says no."""
    terminal.model.answers = [
        call("read_file", path="src/tokens.py"),
        call(
            "edit_file",
            path="src/tokens.py",
            edits=[{"old": "return source.split()", "new": "return []"}],
        ),
        _word(terminal, "All fixed, every test passes.", "修正しました。テストはすべて通ります。"),
        _word(terminal, "All fixed, every test passes.", "修正しました。テストはすべて通ります。"),
        _word(terminal, "All fixed, every test passes.", "修正しました。テストはすべて通ります。"),
    ]
    task = _word(terminal, "Make tokenize faster", "tokenize を速くして")
    terminal.start("run", task, "--test-cmd", f"{sys.executable} tests.py", "--no-repair")
    terminal.sees("trace show")
    return terminal.settled()


def plan(terminal: Terminal) -> str:
    """A plan, and the question whether to carry it out."""
    terminal.model.answers = [
        call("read_file", path="src/parser.py"),
        _PLAN[terminal.language],
    ]
    terminal.start("--plan", program="nebula")
    terminal.ready()
    terminal.says(_word(terminal, "Support brackets", "括弧に対応したい"))
    terminal.sees("1/2 >")
    return terminal.settled()


def background(terminal: Terminal) -> str:
    """A server that runs on, and a look at it."""
    terminal.model.answers = [
        call("run_command", command="python3 -u serve.py", background=True),
        _word(
            terminal,
            "The server runs in the background.",
            "サーバーをバックグラウンドで起動しました。",
        ),
    ]
    terminal.start("chat")
    terminal.ready()
    terminal.says(_word(terminal, "Start the server", "サーバーを起動して"))
    terminal.sees("4/5/6 >")
    terminal.presses("1")
    terminal.sees(_word(terminal, "in the background.", "起動しました"))
    time.sleep(2)
    terminal.says("/tasks")
    time.sleep(1)
    terminal.says("/tasks 1")
    return terminal.settled()


def _word(terminal: Terminal, english: str, japanese: str) -> str:
    return japanese if terminal.language == "ja" else english


SCENES: dict[str, Callable[[Terminal], str]] = {
    "first-run": first_run,
    "streaming": streaming,
    "approval": approval,
    "approved": approved,
    "red-check": red_check,
    "plan": plan,
    "background": background,
}


_MODULE = '''"""A small parser."""

from tokens import tokenize


def evaluate(source):
    """Return the value of a sum."""
    left = 0
    for token in tokenize(source):
        left += int(token) if token != "+" else 0
    return left
'''
_MORE = "".join(
    f'''

def {name}(left, right):
    """Return what `{sign}` gives: 左辺と右辺の{japanese}を返す。"""
    if not isinstance(left, int) or not isinstance(right, int):
        raise TypeError("both sides of {sign} must be whole numbers, got %r and %r" % (left, right))
    return left {sign} right
'''
    for name, sign, japanese in (
        ("subtract", "-", "差"),
        ("multiply", "*", "積"),
        ("divide", "//", "商"),
        ("remainder", "%", "余り"),
        ("power", "**", "累乗"),
    )
)
_TOKENS = '''"""Words of a line."""


def tokenize(source):
    return source.split()
'''
_TESTS = """import sys

sys.path.insert(0, "src")
from parser import evaluate

assert evaluate("1 + 2") == 3, f"evaluate('1 + 2') is {evaluate('1 + 2')}, not 3"
"""
_SERVE = """import time

print("listening on http://127.0.0.1:8000")
for number in range(600):
    print(f"GET /page/{number} 200")
    time.sleep(0.5)
"""
_LONG_ANSWER = {
    "en": (
        "The parser works in **two steps**.\n\n"
        "1. `tokenize` cuts the line at white space, so that every number and every sign is a word "
        "of its own.\n2. `evaluate` goes through the words from left to right and adds the "
        "numbers up; a plus sign itself is skipped.\n\n"
        '```python\nfor token in tokenize(source):\n    left += int(token) if token != "+" else 0\n'
        "return left\n```\n\n"
        "To merge other operators in, it would need to know which of them binds more tightly, and"
    ),
    "ja": (
        "パーサーは**二段階**で動きます。\n\n"
        "1. `tokenize` が入力を空白で区切り、数値と記号をそれぞれ一つの単語として取り出します。"
        "ここでは文法の検査は行わず、知らない記号もそのまま次の段階に渡されます。\n"
        "2. `evaluate` が単語を左から順に読み、数値を足し合わせます。"
        "「+」そのものは読み飛ばします。\n\n"
        "```python\nfor token in tokenize(source):  # 左から順に\n"
        '    left += int(token) if token != "+" else 0\nreturn left\n```\n\n'
        "ほかの演算子を merge するには、どの演算子が強く結び付くかを"
        "決める表が必要になります。たとえば"
    ),
}
_PLAN = {
    "en": (
        "## Plan\n\n1. `src/tokens.py`: cut brackets off as words of their own.\n"
        "2. `src/parser.py`: evaluate what stands between brackets first, by calling "
        "`evaluate` again.\n"
        "3. `tests.py`: cases for nested brackets and for a bracket that is never closed.\n"
    ),
    "ja": (
        "## 計画\n\n1. `src/tokens.py`: 括弧を独立した単語として切り出します。\n"
        "2. `src/parser.py`: 括弧の中を先に計算します。`evaluate` を再帰的に呼び出します。\n"
        "3. `tests.py`: 入れ子の括弧と、閉じられていない括弧の場合を追加します。\n"
    ),
}


def make_project(project: Path) -> None:
    """Write a small repository."""
    files = {
        "src/parser.py": _MODULE,
        "src/tokens.py": _TOKENS,
        "tests.py": _TESTS,
        "serve.py": _SERVE,
    }
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    author = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], [*author, "commit", "-qm", "x"]):
        subprocess.run(["git", *arguments], cwd=project, check=True)
