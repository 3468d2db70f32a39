"""Small tasks for the embedded model, and what the written file must do.

``HELD_OUT`` was written down before any prompt or grammar was tuned; ``HELD_OUT_2`` after the first
rate was known and before anything was changed because of it. ``TUNING`` is what the prompt profile
was built with.

First rates, each seen once: ``HELD_OUT`` 21 of 24 (model and protocol in one process),
``HELD_OUT_2`` 22 of 24 (installed command). Both sets have been seen since. With one table of forms
instead of a task parser and a Japanese glossary: 22 and 20, where 23 and 22 had been (model and
protocol in one process); functions asked for in Japanese are refused.

Every task goes through the installed command with a fresh process:

    python benchmarks/embedded_tasks.py [held-out] [held-out-2] [tuning]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SmallTask:
    """One phrasing, the file it should end in, and how that file is judged.

    ``kind`` is ``print`` (run it, stdout must match ``expected``), ``call`` (import it, the
    expression must be true), ``text`` (content must match) or ``json`` (must equal).
    """

    path: str
    kind: str
    text: str
    expected: str
    tree: tuple[tuple[str, str], ...] = ()


HELD_OUT = (
    SmallTask(
        "hello.py",
        "print",
        "Write a Python script hello.py that prints Hello, World!",
        r"Hello, World!",
    ),
    SmallTask(
        "src/greet.py",
        "print",
        "Make a file src/greet.py which prints Good morning",
        "Good morning",
    ),
    SmallTask(
        "scripts/start.py",
        "print",
        "Add scripts/start.py; running it should print Server started",
        "Server started",
    ),
    SmallTask(
        "bye.py",
        "print",
        "I need a small program in bye.py. It must print Goodbye.",
        r"Goodbye\.?",
    ),
    SmallTask(
        "app/main.py", "print", "Create a hello world program in app", r"(?i)hello,? world[.!]?"
    ),
    SmallTask(
        "tools/count.py",
        "print",
        "Please create tools/count.py that prints the numbers from 1 to 5",
        r"1\s+2\s+3\s+4\s+5",
    ),
    SmallTask(
        "math_tools.py",
        "call",
        "Write math_tools.py with a function add(a, b) that returns the sum",
        "add(2, 3) == 5",
    ),
    SmallTask(
        "double.py",
        "call",
        "Create a function double(x) in double.py that returns x times two",
        "double(21) == 42",
    ),
    SmallTask(
        "notes/hello.txt", "text", "Put the text Hello World into notes/hello.txt", "Hello World"
    ),
    SmallTask(
        "README.md", "text", "Create README.md with the title My Project", r"# My Project(\s.*)?"
    ),
    SmallTask(
        "config.json",
        "json",
        "Create config.json with the key name set to demo",
        '{"name": "demo"}',
    ),
    SmallTask(
        "app/main.py", "print", "Create app/main.py that prints the sum of 2 and 3", r"(.*\b)?5"
    ),
    SmallTask(
        "hello.py",
        "print",
        "hello.py に Hello World と表示するプログラムを作成してください",
        "Hello World",
    ),
    SmallTask(
        "app/main.py", "print", "app に Hello World を表示するスクリプトを作って", "Hello World"
    ),
    SmallTask(
        "src/main.py", "print", "src/main.py を作成して Hello Japan と出力する", "Hello Japan"
    ),
    SmallTask("greet.py", "print", "greet.py を作って「こんにちは」と表示", "こんにちは"),
    SmallTask("notes.txt", "text", "notes.txt に Hello と書いてください", "Hello"),
    SmallTask("README.md", "text", "README.md を作成。タイトルは Demo", r"# Demo(\s.*)?"),
    SmallTask(
        "app/main.py",
        "print",
        "app/main.py を Hello EverContext を表示するように作成",
        "Hello EverContext",
    ),
    SmallTask("calc.py", "call", "calc.py に 2つの数を足す関数 add を作成", "add(2, 3) == 5"),
    SmallTask(
        "settings.json", "json", "settings.json を作って name を demo にする", '{"name": "demo"}'
    ),
    SmallTask("web/main.py", "print", "web に Hello World を作成", "Hello World"),
    SmallTask(
        "app/main.py",
        "print",
        "Update app/main.py so that it prints Hello again",
        "Hello again",
        (("app/main.py", 'print("Hello World")\n'),),
    ),
    SmallTask(
        "hello.py", "print", "a script called hello.py saying Welcome to Tokyo", "Welcome to Tokyo"
    ),
)

HELD_OUT_2 = (
    SmallTask("intro.py", "print", "Create intro.py to print My name is Ken", "My name is Ken"),
    SmallTask("jobs/daily.py", "print", "Write jobs/daily.py that outputs Job done", "Job done"),
    SmallTask(
        "main.py", "print", "Write a tiny Python program that prints Open sesame", "Open sesame"
    ),
    SmallTask(
        "lib/main.py", "print", "Add a script to the lib directory that prints Loaded", "Loaded"
    ),
    SmallTask("note.py", "print", 'note.py should print "Do not panic"', "Do not panic"),
    SmallTask("seq.py", "print", "Make seq.py print every number from 3 to 6", r"3\s+4\s+5\s+6"),
    SmallTask("calc.py", "print", "Create calc.py which prints 8 times 7", r"(.*\b)?56"),
    SmallTask("diff.py", "print", "Write diff.py printing the difference of 9 and 4", r"(.*\b)?5"),
    SmallTask(
        "rev.py",
        "call",
        "Create rev.py with a function reverse(s) that returns the string reversed",
        "reverse('abc') == 'cba'",
    ),
    SmallTask(
        "odd.py",
        "call",
        "In odd.py, define is_odd(n), a function that returns True when n is odd",
        "is_odd(3) and not is_odd(4)",
    ),
    SmallTask(
        "cube.py",
        "call",
        "Please add cube.py with a function cube(x) returning x cubed",
        "cube(3) == 27",
    ),
    SmallTask("motd.txt", "text", "Save the message Welcome aboard in motd.txt", "Welcome aboard"),
    SmallTask("names.txt", "text", "names.txt should contain Alice and Bob", "Alice and Bob"),
    SmallTask(
        "docs/setup.md", "text", "Write docs/setup.md, titled Setup Guide", r"# Setup Guide(\s.*)?"
    ),
    SmallTask("theme.json", "json", "Make theme.json where mode is dark", '{"mode": "dark"}'),
    SmallTask("limits.json", "json", "Create limits.json with max set to 10", '{"max": 10}'),
    SmallTask("main.py", "print", "Hello World を表示するプログラムを作成", "Hello World"),
    SmallTask("cli/main.py", "print", "cli に Hello World を作成してください", "Hello World"),
    SmallTask("ok.py", "print", "ok.py を作り、All OK と出力させる", "All OK"),
    SmallTask(
        "ohayo.py",
        "print",
        "「おはようございます」と表示する ohayo.py を作成",
        "おはようございます",
    ),
    SmallTask("nums.py", "print", "nums.py で 1 から 3 まで表示する", r"1\s+2\s+3"),
    SmallTask("diary.txt", "text", "diary.txt に Sunny day と記載する", "Sunny day"),
    SmallTask("NOTES.md", "text", "NOTES.md を作成し、見出しを Notes にする", r"# Notes(\s.*)?"),
    SmallTask("div.py", "call", "div.py に 2つの数を割る関数 div を追加", "div(8, 2) == 4"),
)

TUNING = (
    SmallTask("app/main.py", "print", "Create app/main.py that prints Hello World", "Hello World"),
    SmallTask("app/main.py", "print", "app に Hello World を作成", "Hello World"),
    SmallTask(
        "morning.py",
        "print",
        "Write a script named morning.py that prints Good evening",
        "Good evening",
    ),
    SmallTask("lib/start.py", "print", "make lib/start.py printing Ready", "Ready"),
    SmallTask("demo/main.py", "print", "Create a program in demo that prints Hi there", "Hi there"),
    SmallTask(
        "status.py", "print", "Need status.py. When run it says All systems go", "All systems go"
    ),
    SmallTask("hello.py", "print", "hello.py: print the text It works!", "It works!"),
    SmallTask(
        "app/main.py",
        "print",
        "Change app/main.py to print Hello once more",
        "Hello once more",
        (("app/main.py", 'print("Hello")\n'),),
    ),
    SmallTask(
        "loop.py", "print", "Create loop.py that prints the numbers from 1 to 3", r"1\s+2\s+3"
    ),
    SmallTask(
        "total.py", "print", "Create total.py that prints the product of 4 and 6", r"(.*\b)?24"
    ),
    SmallTask(
        "square.py",
        "call",
        "Create square.py with a function square(n) that returns n squared",
        "square(4) == 16",
    ),
    SmallTask(
        "ops.py",
        "call",
        "write a function sub(a, b) in ops.py that returns the difference",
        "sub(7, 3) == 4",
    ),
    SmallTask(
        "even.py",
        "call",
        "Create even.py with a function is_even(n) that tells whether n is even",
        "is_even(4) and not is_even(5)",
    ),
    SmallTask("todo.txt", "text", "Write a text file todo.txt containing Buy milk", "Buy milk"),
    SmallTask(
        "docs/intro.md",
        "text",
        "Create docs/intro.md with the heading Introduction",
        r"# Introduction(\s.*)?",
    ),
    SmallTask(
        "package.json", "json", "create package.json with version set to 1.0", '{"version": "1.0"}'
    ),
    SmallTask("main.py", "print", "main.py に Good night を出力する処理を書く", "Good night"),
    SmallTask("bin/run.py", "print", "bin/run.py を作成して、Start と表示する", "Start"),
    SmallTask(
        "tool/main.py", "print", "tool フォルダに Welcome と表示するプログラムを作る", "Welcome"
    ),
    SmallTask("say.py", "print", "say.py で「おはよう」と表示する", "おはよう"),
    SmallTask("memo.txt", "text", "memo.txt に Tomorrow と書く", "Tomorrow"),
    SmallTask("docs/guide.md", "text", "docs/guide.md を作成。見出しは Guide", r"# Guide(\s.*)?"),
    SmallTask("ops.py", "call", "ops.py に 2つの数を引く関数 sub を作って", "sub(7, 3) == 4"),
    SmallTask(
        "data.json", "json", "data.json を作成し title を Sample に設定", '{"title": "Sample"}'
    ),
    SmallTask("main.py", "print", "Write a program that prints Live in Tokyo", "Live in Tokyo"),
    SmallTask("main.py", "print", "print OK", "OK"),
    SmallTask("app/hi.py", "print", 'Create ./app/hi.py printing "Hi, Bob!"', "Hi, Bob!"),
    SmallTask(
        "cli.py",
        "print",
        "could you write me cli.py? it should output Loading...",
        r"Loading(\.\.\.)?",
    ),
    SmallTask(
        "src/main.py",
        "print",
        "Create a Python program in the src folder that prints Build complete",
        "Build complete",
    ),
    SmallTask(
        "greeting.txt",
        "text",
        "Create greeting.txt containing the words Good day to you",
        "Good day to you",
    ),
    SmallTask(
        "CHANGELOG.md", "text", "Make a CHANGELOG.md whose heading is Changes", r"# Changes(\s.*)?"
    ),
    SmallTask("ver.json", "json", "Write ver.json with version set to 3", '{"version": 3}'),
    SmallTask(
        "max.py",
        "call",
        "In max.py write a function biggest(a, b) that returns the larger one",
        "biggest(2, 9) == 9 and biggest(5, 1) == 5",
    ),
    SmallTask(
        "triple.py",
        "call",
        "Create triple.py with function triple(n) returning n times three",
        "triple(4) == 12",
    ),
    SmallTask(
        "greet.py",
        "call",
        "Create greet.py with a function hello() that returns Hello",
        "hello() == 'Hello'",
    ),
    SmallTask("count.py", "print", "count.py で 1 から 4 までの数字を表示する", r"1\s+2\s+3\s+4"),
    SmallTask(
        "src/app.py",
        "print",
        "src/app.py に「処理を開始します」と表示するコードを書いてください",
        "処理を開始します",
    ),
    SmallTask(
        "src/main.py",
        "print",
        "src フォルダに Good Afternoon を出力するスクリプトを作成",
        "Good Afternoon",
    ),
    SmallTask("test.txt", "text", "test.txt を作成して、中に Sample Text と書く", "Sample Text"),
    SmallTask("mul.py", "call", "mul.py に 2つの数を掛ける関数 mul を作成する", "mul(3, 4) == 12"),
    SmallTask("x.json", "json", "x.json を作成し、lang を ja に設定してください", '{"lang": "ja"}'),
    SmallTask("sum.py", "print", "sum.py prints 10 plus 20", r"(.*\b)?30"),
    SmallTask("app/main.py", "print", "アプリを作成: app/main.py は Hello と表示", "Hello"),
    SmallTask("a.py", "print", "Create a.py that prints the total of 7 and 1", r"(.*\b)?8"),
    SmallTask("c.py", "print", "Create c.py that prints 100 divided by 4", r"(.*\b)?25(\.0)?"),
    SmallTask("d.py", "print", "Make d.py print the numbers 1 to 4", r"1\s+2\s+3\s+4"),
    SmallTask(
        "e.py",
        "print",
        "please write e.py that counts from 5 to 8 and prints each number",
        r"5\s+6\s+7\s+8",
    ),
    SmallTask(
        "bin/f.py", "print", "Please create bin/f.py that prints numbers from 2 to 4", r"2\s+3\s+4"
    ),
    SmallTask("g.py", "print", "Create g.py that prints Go three times", r"Go\s+Go\s+Go"),
    SmallTask(
        "h.json", "json", "Create h.json with the key size set to large", '{"size": "large"}'
    ),
    SmallTask(
        "i.json", "json", "Write i.json having the key port with value 8080", '{"port": 8080}'
    ),
    SmallTask("k.json", "json", "Create k.json with debug set to true", '{"debug": true}'),
    SmallTask("l.json", "json", "l.json を作成し、キー level を high にする", '{"level": "high"}'),
    SmallTask(
        "m.py",
        "call",
        "Create m.py with a function minus(a, b) that returns a minus b",
        "minus(5, 3) == 2",
    ),
    SmallTask(
        "n.py",
        "call",
        "Write a function shout(text) in n.py which returns the text in upper case",
        "shout('a') == 'A'",
    ),
    SmallTask("p.py", "call", "p.py に数を2倍にする関数 twice を作成", "twice(4) == 8"),
    SmallTask("q.txt", "text", "q.txt should say See you soon", "See you soon"),
    SmallTask("r.txt", "text", "Store the sentence I like tea in r.txt", "I like tea"),
    SmallTask("s.md", "text", "Write s.md titled Road Map", r"# Road Map(\s.*)?"),
    SmallTask("t.md", "text", "t.md を作って、タイトルを Memo にする", r"# Memo(\s.*)?"),
    SmallTask("u.py", "print", "u.py を作り、Hello Kyoto と表示させる", "Hello Kyoto"),
    SmallTask("v.py", "print", "「ありがとう」と出力する v.py を作成", "ありがとう"),
    SmallTask("w.py", "print", "w.py で 2 から 5 まで表示する", r"2\s+3\s+4\s+5"),
    SmallTask("x.txt", "text", "x.txt に Fine weather と保存する", "Fine weather"),
)

SETS = {"held-out": HELD_OUT, "held-out-2": HELD_OUT_2, "tuning": TUNING}


def run_task(task: SmallTask, root: Path) -> tuple[int, str]:
    """Do the task with the installed command; return its exit code and last words."""
    for path, content in task.tree:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content, encoding="utf-8")
    command = [str(Path(sys.executable).with_name("evercontext")), "run", "--root", str(root)]
    command += ["--model", "embedded:smollm2", "--json", "--task", task.text]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return ended.returncode, (ended.stderr.strip().splitlines() or [""])[-1]


def is_right(task: SmallTask, root: Path) -> bool:
    """Run or read the file that should be there, and compare."""
    file = root / task.path
    if not file.is_file():
        return False
    content = file.read_text(encoding="utf-8")
    if task.kind == "text":
        return re.fullmatch(task.expected, content.strip(), re.S) is not None
    if task.kind == "json":
        return bool(json.loads(content) == json.loads(task.expected))
    if task.kind == "call":
        file.write_text(f"{content}\nassert {task.expected}\n", encoding="utf-8")
    try:
        command = [sys.executable, "-I", "-X", "utf8", str(file)]
        ended = subprocess.run(command, capture_output=True, timeout=20, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return False
    printed = ended.stdout.decode("utf-8", "replace").strip()
    wanted = task.kind == "call" or re.fullmatch(task.expected, printed, re.S)
    return ended.returncode == 0 and bool(wanted)


def main(names: list[str]) -> int:
    """Try the sets that are named (the held-out ones by default); print each miss and the rate."""
    for name in names or ["held-out", "held-out-2"]:
        right, started = 0, time.monotonic()
        for task in SETS[name]:
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder) / "project"
                root.mkdir()
                code, said = run_task(task, root)
                good = code == 0 and is_right(task, root)
                right += good
                if not good:
                    file = root / task.path
                    wrote = file.read_text(encoding="utf-8") if file.is_file() else said
                    print(f"  missed (exit {code}): {task.text}\n    {wrote.strip()!r}")
        took = (time.monotonic() - started) / len(SETS[name])
        print(f"{name}: {right} of {len(SETS[name])} right, {took:.1f} s each", flush=True)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sets", nargs="*", metavar="set", help=", ".join(SETS))
    raise SystemExit(main(parser.parse_args().sets))
