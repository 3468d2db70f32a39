"""Small tasks for the embedded model, and what the written file must do.

``HELD_OUT`` was written down before any prompt or grammar was tuned; ``HELD_OUT_2`` after the first
rate was known and before anything was changed because of it. ``TUNING`` is what the prompt profile
was built with.
"""

from __future__ import annotations

from dataclasses import dataclass


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
)
