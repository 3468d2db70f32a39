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
_NOT_KEYS = re.compile(
    "create|make|write|add|put|save|a|an|the|with|where|whose|keys?|values?|set|to|is|has|having|"
    "contain(ing|s)?|holding|and|json|file|in|of|it|that|should|be",
    re.I,
)
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


_CODE = """\
print ::= "print(" argument (", " argument){0,3} ")"
expression ::= [^"'\\n`#:=]{1,40}
text ::= "\\"" phrase "\\""
name ::= "i" | "n" | "x" | "y" | "name" | "text" | "message" | "number" | "total" | "result"
"""


def _python(task: Assignment) -> str:
    code = _CODE + _phrase_rule(task)
    if task.wants_function:
        return _function(task) + code + "argument ::= text | expression\n"
    if task.numbers:
        return _computation(task)
    return _SCRIPT + code + "argument ::= text | expression\n"


_SCRIPT = f"""\
root ::= line{{1,7}} "{FENCE}"
line ::= (print | name " = " argument) "\\n" | loop
loop ::= "for " name " in range(" expression "):\\n    " print "\\n"
"""


def _computation(task: Assignment) -> str:
    """Counting or one result, made of the numbers in the task."""
    numbers = dict.fromkeys(_NUMBER.search(word) for word in task.words)
    given = dict.fromkeys(found.group() for found in numbers if found)
    loop = '"for " name " in range(" (number ", ")? number " + 1"? "):\\n    print(" name ")"'
    result = '"print(" number (" " [-+*/] " " number){1,3} ")"'
    return f"""\
root ::= {loop if task.numbers == "range" else result} "\\n{FENCE}"
number ::= {_alternatives(given)}
name ::= "i" | "n" | "number"
"""


def _function(task: Assignment) -> str:
    words = (word.split("(")[0] for word in task.words)
    names = [word for word in dict.fromkeys(words) if word.isascii() and word.isidentifier()]
    return f"""\
root ::= "def " defined "(" parameters "):\\n" body{{0,6}} last "{FENCE}"
defined ::= {_alternatives([task.function] if task.function else names)}
parameters ::= [a-z_0-9, =]{{0,40}}
body ::= "    " ("    ")? (statement | print | name " = " argument) "\\n"
statement ::= ("if " | "elif " | "for " | "while ") expression ":" | "else:" | "return " argument
last ::= "    " ("return " argument | print) "\\n"
"""


def _javascript(task: Assignment) -> str:
    return f'root ::= ("console.log(\\"" phrase "\\")\\n"){{1,6}} "{FENCE}"\n' + _phrase_rule(task)


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
    switches = [word for word in ("true", "false", "null") if word in task.words]
    values = ['"\\"" phrase "\\""', *map(_literal, switches + numbers)]
    keys = [word for word in task.words if word not in numbers and not _NOT_KEYS.fullmatch(word)]
    more = len(re.findall(r"\band\b|,", task.english))
    root = f"""\
root ::= "{{" pair (", " pair){{0,{more}}} "}}\\n{FENCE}"
pair ::= "\\"" key "\\": " value
key ::= {_alternatives(map(_inside_quotes, keys or task.words))}
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
