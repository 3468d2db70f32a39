"""List commands that need approval every time, whatever was allowed before.

What they destroy cannot be brought back by undo, or leaves this machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from evercontext.access.launching_programs import SHELLS, WRAPPERS
from evercontext.access.shell_parser import CommandPart, parts_of

_ALWAYS = {
    "sudo": "runs as another user",
    "doas": "runs as another user",
    "su": "runs as another user",
    "eval": "runs a text that cannot be seen",
    "source": "runs a script in this shell",
    "shred": "destroys files",
    "mkfs": "destroys a file system",
    "dd": "can overwrite anything",
    "chown": "changes who owns files",
    "killall": "ends processes",
    "pkill": "ends processes",
    "shutdown": "stops the machine",
    "reboot": "stops the machine",
}
_GIT = {
    "push": "publishes commits",
    "rebase": "rewrites history",
    "filter-branch": "rewrites history",
    "filter-repo": "rewrites history",
    "restore": "discards changes",
    "clean": "deletes files",
    "update-ref": "rewrites history",
    "gc": "drops old commits",
    "prune": "drops old commits",
}
_GIT_WITH = {
    "reset": (("--hard", "--merge", "--keep"), "discards changes"),
    "checkout": (("--", ".", "-f", "--force", "-B"), "discards changes"),
    "switch": (("-f", "--force", "--discard-changes", "-C"), "discards changes"),
    "branch": (("-D", "-d", "--delete", "-M", "-f", "--force"), "loses commits"),
    "tag": (("-d", "--delete", "-f", "--force"), "loses a tag"),
    "stash": (("drop", "clear", "pop"), "can lose a stash"),
    "reflog": (("expire", "delete"), "drops old commits"),
    "commit": (("--amend",), "rewrites history"),
    "worktree": (("remove", "prune"), "deletes a work tree"),
    "rm": (("-r", "-f", "-rf", "-fr", "--force"), "deletes files"),
}
_GIT_TAKES_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})
_DELETERS = frozenset({"rm", "rmdir", "unlink", "trash", "mv", "truncate"})


def reason_to_ask(line: str, root: str = "") -> str | None:
    """Say why this command line is asked for every time, or ``None``."""
    for part in parts_of(line):
        if reason := _reason(part, part.words, root):
            return reason
    return None


def _reason(part: CommandPart, words: Sequence[str], root: str) -> str | None:
    words = _unwrapped(words)
    if not words:
        return None
    name = PurePosixPath(words[0]).name
    if name in SHELLS:
        return _inner_script(words, root)
    if name == "." or name in _ALWAYS:
        return f"{name} {_ALWAYS.get(name, 'runs a script in this shell')}"
    if name.startswith("mkfs"):
        return f"{name} destroys a file system"
    if "$" in words[0] or "`" in words[0]:
        return "the program is only known when it runs"
    if name == "git":
        return _git(words[1:])
    if name in _DELETERS:
        return _deletes(name, part, words[1:], root)
    if name == "find":
        return _find(words[1:], part, root)
    if name == "chmod" and any(w.startswith("-") and "R" in w for w in words[1:]):
        return "chmod -R changes a whole tree"
    return None


def _unwrapped(words: Sequence[str]) -> Sequence[str]:
    """The words without assignments and programs that only start another one."""
    while words:
        name = PurePosixPath(words[0]).name
        if "=" in words[0] and words[0].partition("=")[0].isidentifier():
            words = words[1:]
        elif name in WRAPPERS:
            rest = list(words[1:])
            while rest and rest[0].startswith("-"):
                rest.pop(0)
            if name in ("nice", "ionice", "xargs", "stdbuf") and rest and rest[0].isdigit():
                rest.pop(0)
            words = rest[WRAPPERS[name] :]
        else:
            return words
    return words


def _inner_script(words: Sequence[str], root: str) -> str | None:
    if PurePosixPath(words[0]).name == "busybox":
        return _reason(CommandPart(tuple(words[1:])), words[1:], root)
    for index, word in enumerate(words[1:], start=1):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            script = words[index + 1] if index + 1 < len(words) else ""
            return reason_to_ask(script, root)
    # Without a script it reads one from what is piped into it.
    has_file = any(not word.startswith("-") for word in words[1:])
    return None if has_file else f"{words[0]} runs what is piped into it"


def _git(words: Sequence[str]) -> str | None:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in _GIT_TAKES_VALUE and rest:
            rest.pop(0)
    if not rest:
        return None
    verb, arguments = rest[0], rest[1:]
    if verb in _GIT:
        return f"git {verb} {_GIT[verb]}"
    flags, meaning = _GIT_WITH.get(verb, ((), ""))
    for word in arguments:
        bundled = word.startswith("-") and not word.startswith("--") and len(word) > 2
        short = [f"-{letter}" for letter in word[1:]] if bundled else []
        if word in flags or any(letter in flags for letter in short):
            return f"git {verb} {word} {meaning}"
    return None


def _deletes(name: str, part: CommandPart, words: Sequence[str], root: str) -> str | None:
    """Files named one by one inside the tree can be brought back; everything else is asked for."""
    for word in words:
        if word.startswith("-"):
            continue
        if not is_own_file(word, root):
            return f"{name} {word} reaches beyond single files of this project"
    return f"{name} takes names that are only known when it runs" if part.unclear else None


def _find(words: Sequence[str], part: CommandPart, root: str) -> str | None:
    if "-delete" in words:
        return "find -delete deletes files"
    for flag in ("-exec", "-execdir", "-ok", "-okdir"):
        if flag in words:
            inner = [word for word in words[words.index(flag) + 1 :] if word not in (";", "+")]
            name = PurePosixPath(inner[0]).name if inner else ""
            if name in _DELETERS or name in SHELLS:
                return f"find {flag} {name} can delete files"
            return _reason(part, inner, root)
    return None


def is_own_file(word: str, root: str = "") -> bool:
    """True for a plain path below the root that is not git's and not the whole tree."""
    if root and word.startswith(f"{root.rstrip('/')}/"):
        word = word[len(root.rstrip("/")) + 1 :]
    pieces = PurePosixPath(word).parts
    if word.startswith(("/", "~")) or ".." in pieces or ".git" in pieces:
        return False
    return bool(pieces) and pieces[0] not in ("*", "**", ".*") and "$" not in word
