"""GBNF: the forms that leave a tiny model no way to go wrong in shape.

The text of a file may quote only phrases of the task: a small model copies well and remembers
badly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from evercontext.models.embedded.assignment import Assignment

FENCE = "```"
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def one_of(choices: Iterable[str]) -> str:
    """Return the grammar of exactly one of ``choices``."""
    return f"root ::= {_alternatives(choices)}\n"


def content(kind: str, task: Assignment) -> str:
    """Return the grammar of one file's content up to the closing fence."""
    return _KINDS[kind](task)


def _alternatives(choices: Iterable[str]) -> str:
    return " | ".join(_literal(choice) for choice in choices)


def _literal(text: str) -> str:
    """GBNF shares JSON's string escapes for everything that may occur in one line."""
    return json.dumps(text, ensure_ascii=False)


def _phrase_rule(task: Assignment) -> str:
    return f"phrase ::= {_alternatives(map(_inside_quotes, task.phrases))}\n"


def _inside_quotes(phrase: str) -> str:
    return phrase.replace("\\", "").replace('"', "")


_CODE_ITEM = """\
item ::= [^"'\\n`#] | "\\"" phrase "\\""
rest ::= item{1,60}
name ::= "i" | "n" | "x" | "y" | "name" | "text" | "message" | "number" | "total" | "result"
"""


def _python(task: Assignment) -> str:
    lines = """\
line ::= start rest "\\n"
start ::= "print(" | "for " | "while " | "if " | "else:" | name " = " | "    "
"""
    if task.wants_function:
        names = [word.split("(")[0] for word in task.words]
        names = [name for name in dict.fromkeys(names) if name.isascii() and name.isidentifier()]
        root = f"""\
root ::= ("def " defined "(" parameters "):\\n" | "class " defined ":\\n") body{{1,8}} "{FENCE}"
defined ::= {_alternatives(names)}
parameters ::= [a-z_0-9, =]{{0,40}}
body ::= "    " rest "\\n"
"""
        return root + _CODE_ITEM + _phrase_rule(task)
    return f'root ::= line{{1,8}} "{FENCE}"\n' + lines + _CODE_ITEM + _phrase_rule(task)


def _javascript(task: Assignment) -> str:
    root = f"""\
root ::= line{{1,8}} "{FENCE}"
line ::= ("console.log(" | "function " | "for (" | "const " | "return " | "  " | "}}") rest? "\\n"
"""
    return root + _CODE_ITEM + _phrase_rule(task)


def _shell(task: Assignment) -> str:
    return f'root ::= ("echo \\"" phrase "\\"\\n"){{1,6}} "{FENCE}"\n' + _phrase_rule(task)


def _text(task: Assignment) -> str:
    return f'root ::= phrase "\\n{FENCE}"\n' + _phrase_rule(task)


def _markdown(task: Assignment) -> str:
    root = f'root ::= ("# " phrase "\\n") line{{0,5}} "{FENCE}"\n'
    return root + 'line ::= ("## " | "- ")? phrase "\\n"\n' + _phrase_rule(task)


def _html(task: Assignment) -> str:
    root = f"""\
root ::= "<!doctype html>\\n" element{{1,6}} "{FENCE}"
element ::= title | heading | paragraph
title ::= "<title>" phrase "</title>\\n"
heading ::= "<h1>" phrase "</h1>\\n"
paragraph ::= "<p>" phrase "</p>\\n"
"""
    return root + _phrase_rule(task)


def _json(task: Assignment) -> str:
    numbers = [word for word in task.words if _NUMBER.fullmatch(word)]
    values = ['"\\"" phrase "\\""', '"true"', '"false"', *map(_literal, numbers)]
    keys = [word for word in task.words if not _NUMBER.fullmatch(word)]
    root = f"""\
root ::= "{{" pair (", " pair){{0,4}} "}}\\n{FENCE}"
pair ::= "\\"" key "\\": " value
key ::= {_alternatives(map(_inside_quotes, keys))}
value ::= {" | ".join(values)}
"""
    return root + _phrase_rule(task)


_KINDS = {
    "python": _python,
    "javascript": _javascript,
    "shell": _shell,
    "text": _text,
    "markdown": _markdown,
    "html": _html,
    "json": _json,
}
