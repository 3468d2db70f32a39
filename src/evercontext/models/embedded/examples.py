"""The prompt of the tiny model: a few solved tasks of the same kind, then the task.

Examples are chosen so that they copy from their task the way the model should, and so that none of
them is likely to be the task itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from evercontext.models.embedded.assignment import Assignment


@dataclass(frozen=True, slots=True)
class Example:
    """A solved task."""

    task: str
    path: str
    content: str


_SCRIPTS = (
    Example("Create run.py that prints Good luck", "run.py", 'print("Good luck")'),
    Example("create Nice day in bin", "bin/main.py", 'print("Nice day")'),
    Example(
        "Please make lib/tea.py. It must print Tea is hot", "lib/tea.py", 'print("Tea is hot")'
    ),
    Example(
        "Write row.py that prints Yes 4 times",
        "row.py",
        'for i in range(4):\n    print("Yes")',
    ),
    Example(
        "change end.py so that it says Thank you, friend!", "end.py", 'print("Thank you, friend!")'
    ),
)
_RANGES = (
    Example(
        "Write list.py that prints the numbers from 1 to 9",
        "list.py",
        "for number in range(1, 9 + 1):\n    print(number)",
    ),
    Example(
        "print from 4 to 6 in steps.py",
        "steps.py",
        "for number in range(4, 6 + 1):\n    print(number)",
    ),
    Example(
        "Make go.py that counts from 7 to 8 and prints each number",
        "go.py",
        "for number in range(7, 8 + 1):\n    print(number)",
    ),
)
_RESULTS = (
    Example("Please make lib/area.py. It prints 5 minus 8", "lib/area.py", "print(5 - 8)"),
    Example("Create k.py that prints the sum of 70 and 1", "k.py", "print(70 + 1)"),
    Example("Create part.py that prints 90 divided by 3", "part.py", "print(90 / 3)"),
    Example("Write it.py printing the product of 2 and 11", "it.py", "print(2 * 11)"),
)
_FUNCTIONS = (
    Example(
        "Write calc/mul.py with a function mul(x, y) that returns the product",
        "calc/mul.py",
        "def mul(x, y):\n    return x * y",
    ),
    Example(
        "create function half that divides a number by two in half.py",
        "half.py",
        "def half(number):\n    return number / 2",
    ),
    Example(
        "Create sign.py with a function is_negative(n) that tells whether n is negative",
        "sign.py",
        "def is_negative(n):\n    return n < 0",
    ),
    Example(
        "Add a function greet(name) to hi.py that returns the name in upper case",
        "hi.py",
        "def greet(name):\n    return name.upper()",
    ),
)
_TEXTS = (
    Example("Write Have fun into fun.txt", "fun.txt", "Have fun"),
    Example("write Sunday in week.txt", "week.txt", "Sunday"),
    Example("Create list.txt with the text One two three", "list.txt", "One two three"),
    Example("Please make a text file a.txt that says See you", "a.txt", "See you"),
)
_MARKDOWNS = (
    Example("Create NOTES.md with the title Great Plan", "NOTES.md", "# Great Plan"),
    Example("create USAGE.md. title is Usage", "USAGE.md", "# Usage"),
    Example("Make docs/faq.md with the heading Questions", "docs/faq.md", "# Questions"),
)
_JSONS = (
    Example("Create user.json with the key age set to 5", "user.json", '{"age": 5}'),
    Example("create a.json and set color to red", "a.json", '{"color": "red"}'),
    Example("Write b.json with city set to Paris", "b.json", '{"city": "Paris"}'),
)
_JAVASCRIPTS = (
    Example("Create run.js that prints Good luck", "run.js", 'console.log("Good luck")'),
    Example("create Nice day in bin", "bin/main.js", 'console.log("Nice day")'),
    Example("Write end.js. It says Thank you", "end.js", 'console.log("Thank you")'),
)
_SHELLS = (
    Example("Create run.sh that prints Good luck", "run.sh", 'echo "Good luck"'),
    Example("Write end.sh. It says Thank you", "end.sh", 'echo "Thank you"'),
)
_HTMLS = (
    Example(
        "Create a.html with the title Shop and the text Open today",
        "a.html",
        "<!doctype html>\n<title>Shop</title>\n<p>Open today</p>",
    ),
    Example("Make b.html that says Good luck", "b.html", "<!doctype html>\n<h1>Good luck</h1>"),
)
_KINDS = {
    "python": _SCRIPTS,
    "text": _TEXTS,
    "markdown": _MARKDOWNS,
    "json": _JSONS,
    "javascript": _JAVASCRIPTS,
    "shell": _SHELLS,
    "html": _HTMLS,
}


def for_content(kind: str, task: Assignment, attempt: int = 0) -> tuple[Example, ...]:
    """Return the examples for one kind of file; a second attempt sees them in another order."""
    chosen = _KINDS[kind]
    if kind == "python" and task.wants_function:
        chosen = _FUNCTIONS
    elif kind == "python" and task.numbers:
        chosen = _RANGES if task.numbers == "range" else _RESULTS
    return chosen if attempt % 2 == 0 else chosen[::-1]


def content_prompt(task: Assignment, path: str, kind: str, attempt: int = 0) -> str:
    """Return the text that the model continues with the content of ``path``."""
    shots = [
        f"Task: {example.task}\nFile: {example.path}\n```{kind}\n{example.content}\n```\n"
        for example in for_content(kind, task, attempt)
    ]
    return "\n".join([*shots, f"Task: {task.english}\nFile: {path}\n```{kind}\n"])


def path_prompt(task: str) -> str:
    """Return the text that the model continues with the file that a task is to be written to."""
    solved = (_SCRIPTS[0], _TEXTS[0], _FUNCTIONS[3])
    shots = [f"Task: {example.task}\nFile: {example.path}\n" for example in solved]
    return "\n".join([*shots, f"Task: {task}\nFile: "])
