"""Remove courtesies and values from a request, so that the words of the tool remain."""

from __future__ import annotations

import re

from evercontext.retrieval.terms import STOP_WORDS, runs

_PATH = re.compile(r"(?:[A-Za-z]:|~)?(?:[/\\][\w.\-]+){2,}/?|\b[\w\-]+\.[a-z]{2,5}\b", re.ASCII)
_VALUE = re.compile(
    r'"[^"\n]{1,80}"|“[^”\n]{1,80}”|`[^`\n]{1,80}`|「[^」\n]{1,80}」|『[^』\n]{1,80}』'
    r"|(?<!\w)'[^'\n]{1,80}'(?!\w)"
)
_COURTESY = re.compile(
    r"\b(?:please|kindly|hey|hi|hello|thanks|thank you|(?:can|could|would|will) you"
    r"|(?:i|we)(?:'m| am|'re| are) (?:looking for|trying to|interested in|curious about)"
    r"|(?:i|we)(?:'d| would) like(?: you)?(?: to)?|(?:i|we) (?:want|need|have)(?: to)?"
    r"|help me(?: to)?|(?:tell|give|provide|show|send|get) (?:me|us)(?: with)?(?: about)?"
    r"|let me know|i wonder(?: if)?|is there (?:a|any) way to|how (?:do|can) i|provide)\b"
    r"|(?:を|が)?(?:教えて|見せて|知りたい|欲しい|ほしい|お願い(?:します)?)(?:ください|下さい)?"
    r"|ください|下さい",
    re.I,
)


def essence(text: str) -> str:
    """Return a folded request without courtesies, quoted values and names of files.

    A title in quotes is what a tool is given, and would find tools that happen to use its words.
    If nothing else was said, it stays.
    """
    text = _PATH.sub(_kind_of_path, text)
    for noise in (_VALUE, _COURTESY):
        left = noise.sub(" ", text)
        if left != text and _says_something(left):
            text = left
    return text


def _says_something(text: str) -> bool:
    return any(len(word) > 1 and word.lower() not in STOP_WORDS for word in runs(text))


def _kind_of_path(path: re.Match[str]) -> str:
    """A path in a task says that a file is meant, and of which kind; its name is noise."""
    _, dot, kind = path[0].rpartition(".")
    return f" file {kind} " if dot and "/" not in kind else " folder directory "
