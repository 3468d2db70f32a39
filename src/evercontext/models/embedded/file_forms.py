"""Define the kinds of files the embedded model writes: examples, a grammar and a check for each.

The model continues a prompt of solved tasks; the grammar (GBNF) keeps it to the form, and to texts
that the task contains, because a small model copies well and remembers badly.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

FENCE = "```"


@dataclass(frozen=True, slots=True)
class FileForm:
    """One kind of file."""

    name: str
    ending: str
    entry: str
    """Its conventional file name, for a task that names no file."""
    words: str
    """A pattern of what a task says that asks for this form."""
    root: str
    """The grammar of a file, in which ``phrase`` stands for a text of the task."""
    examples: tuple[tuple[str, str, str], ...]
    """Solved tasks: task, path, content. None of them is likely to be the task itself."""
    english_only: bool = False
    """True where the model has to understand the task, not only to copy from it."""


FORMS = (
    FileForm(
        "python",
        ".py",
        "main.py",
        r"\bfunctions?\b|\bdef\b|\bdefine\b|関数",
        r""""def " name "(" (name (", " name)*)? "):\n    return " value "\n"
name ::= [a-z] [a-z_0-9]{0,24}
value ::= "\"" phrase "\"" | [^"'\n`#:=]{1,40}
""",
        (
            (
                "Write mul.py with a function mul(x, y) that returns the product",
                "mul.py",
                "def mul(x, y):\n    return x * y",
            ),
            (
                "Create sign.py with a function is_negative(n) that tells whether n is negative",
                "sign.py",
                "def is_negative(n):\n    return n < 0",
            ),
            (
                "Add a function greet(name) to hi.py that returns the name in upper case",
                "hi.py",
                "def greet(name):\n    return name.upper()",
            ),
        ),
        english_only=True,
    ),
    FileForm(
        "python",
        ".py",
        "main.py",
        r"\b\d+ to \d+\b|\d+ ?から ?\d+",
        r'''"for number in range(" number ", " number " + 1):\n    print(number)\n"''',
        (
            (
                "Write list.py that prints the numbers from 1 to 9",
                "list.py",
                "for number in range(1, 9 + 1):\n    print(number)",
            ),
            (
                "print from 4 to 6 in steps.py",
                "steps.py",
                "for number in range(4, 6 + 1):\n    print(number)",
            ),
        ),
    ),
    FileForm(
        "python",
        ".py",
        "main.py",
        r"\b(?:sum|total|product|difference|quotient) of \d|"
        r"\d ?(?:plus|minus|times|divided|[-+*/])",
        r'''"print(" number (" " [-+*/] " " number){1,3} ")\n"''',
        (
            ("Please make lib/area.py. It prints 5 minus 8", "lib/area.py", "print(5 - 8)"),
            ("Create k.py that prints the sum of 70 and 1", "k.py", "print(70 + 1)"),
            ("Create part.py that prints 90 divided by 3", "part.py", "print(90 / 3)"),
            ("Write it.py printing the product of 2 and 11", "it.py", "print(2 * 11)"),
        ),
    ),
    FileForm(
        "python",
        ".py",
        "main.py",
        r"",
        r"""("print(\"" phrase "\")\n"){1,4}""",
        (
            ("Create run.py that prints Good luck", "run.py", 'print("Good luck")'),
            ("create Nice day in bin", "bin/main.py", 'print("Nice day")'),
            ("bin/tea.py に Tea is hot と表示", "bin/tea.py", 'print("Tea is hot")'),
            (
                "change end.py so that it says Thank you, friend!",
                "end.py",
                'print("Thank you, friend!")',
            ),
        ),
    ),
    FileForm(
        "json",
        ".json",
        "config.json",
        r"\bjson\b",
        r"""  "{" pair (", " pair){0,PAIRS} "}\n"
pair ::= "\"" key "\": " ("\"" phrase "\"" | literal)
""",
        (
            ("Create user.json with the key age set to 5", "user.json", '{"age": 5}'),
            ("create a.json and set color to red", "a.json", '{"color": "red"}'),
            ("Write b.json with city set to Paris", "b.json", '{"city": "Paris"}'),
        ),
    ),
    FileForm(
        "markdown",
        ".md",
        "README.md",
        r"markdown|readme|heading|document|見出し",
        r'"# " phrase "\n"',
        (
            ("Create NOTES.md with the title Great Plan", "NOTES.md", "# Great Plan"),
            ("create USAGE.md. title is Usage", "USAGE.md", "# Usage"),
            ("Make docs/faq.md with the heading Questions", "docs/faq.md", "# Questions"),
        ),
    ),
    FileForm(
        "text",
        ".txt",
        "notes.txt",
        r"text file|\bnotes?\b|\bmemo\b",
        r'phrase "\n"',
        (
            ("Write Have fun into fun.txt", "fun.txt", "Have fun"),
            ("write Sunday in week.txt", "week.txt", "Sunday"),
            ("Create list.txt with the text One two three", "list.txt", "One two three"),
        ),
    ),
    FileForm(
        "javascript",
        ".js",
        "main.js",
        r"javascript|\bnode",
        r'("console.log(\"" phrase "\")\n"){1,4}',
        (
            ("Create run.js that prints Good luck", "run.js", 'console.log("Good luck")'),
            ("Write end.js. It says Thank you", "end.js", 'console.log("Thank you")'),
        ),
    ),
    FileForm(
        "shell",
        ".sh",
        "main.sh",
        r"\bshell|\bbash",
        r'("echo \"" phrase "\"\n"){1,4}',
        (
            ("Create run.sh that prints Good luck", "run.sh", 'echo "Good luck"'),
            ("Write end.sh. It says Thank you", "end.sh", 'echo "Thank you"'),
        ),
    ),
    FileForm(
        "html",
        ".html",
        "index.html",
        r"\bhtml|web ?page",
        r'"<!doctype html>\n<h1>" phrase "</h1>\n"',
        (
            ("Make b.html that says Good luck", "b.html", "<!doctype html>\n<h1>Good luck</h1>"),
            ("Create a.html with the title Shop", "a.html", "<!doctype html>\n<h1>Shop</h1>"),
        ),
    ),
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NOT_KEYS = re.compile(
    r"create|make|write|add|put|save|a|an|the|with|where|whose|keys?|values?|set|to|is|has|having|"
    r"contain(?:ing|s)?|holding|and|json|file|in|of|it|that|should|be",
    re.I,
)


def form_of(path: str, task: str) -> FileForm | None:
    """Return the form of a file by its ending and its task; ``None`` if it cannot be written."""
    ending = PurePosixPath(path).suffix.lower()
    forms = [form for form in FORMS if form.ending == ending]
    matching = (form for form in forms if re.search(form.words, task, re.I))
    return next(matching, forms[-1] if forms else None)


def entry_file(task: str) -> str:
    """Return the conventional file of the kind that a task without a path asks for."""
    others = (form for form in FORMS if form.ending != ".py")
    matching = (form.entry for form in others if re.search(form.words, task, re.I))
    return next(matching, FORMS[0].entry)


def prompt(form: FileForm, task: str, path: str, *, reverse: bool = False) -> str:
    """Return the text that the model continues with the content of ``path``."""
    examples = form.examples[::-1] if reverse else form.examples
    solved = [
        f"Task: {text}\nFile: {file}\n{FENCE}{form.name}\n{content}\n{FENCE}\n"
        for text, file, content in examples
    ]
    return "\n".join([*solved, f"Task: {task}\nFile: {path}\n{FENCE}{form.name}\n"])


def grammar(form: FileForm, phrases: Iterable[str]) -> str:
    """Return the grammar of one file's content up to the closing fence."""
    texts = [phrase.replace("\\", "").replace('"', "") for phrase in phrases]
    words = [text for text in texts if " " not in text]
    numbers = list(dict.fromkeys(match.group() for w in words if (match := _NUMBER.search(w))))
    switches = [word for word in ("true", "false", "null") if word in words]
    keys = [w for w in words if not _NUMBER.fullmatch(w) and not _NOT_KEYS.fullmatch(w)]
    pairs = sum(word.endswith(",") or word == "and" for word in words)
    root, _, rules = form.root.partition("\n")
    return f"""\
root ::= {root.replace("PAIRS", str(pairs))} "{FENCE}"
{rules}
phrase ::= {one_of(texts)}
number ::= {one_of(numbers or ["0"])}
key ::= {one_of(keys or texts)}
literal ::= {one_of(switches + [n for n in numbers if n in words] or ["null"])}
"""


def one_of(choices: Iterable[str]) -> str:
    """Return the grammar of exactly one of ``choices``."""
    # GBNF shares JSON's string escapes for everything that may occur in one line.
    return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)


def problem_with(content: str, form: FileForm) -> str | None:
    """Return why ``content`` is not a file of this form, or ``None``."""
    if not content.strip():
        return "it is empty"
    try:
        if form.name == "json":
            json.loads(content)
        elif form.name == "python":
            return _undefined_name(ast.parse(content))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"it is not {form.name} ({error})"
    return None


def _undefined_name(tree: ast.Module) -> str | None:
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    known = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} | set(dir(builtins))
    known |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    unknown = [node.id for node in names if node.id not in known]
    return f"it uses {unknown[0]}, which is defined nowhere" if unknown else None
