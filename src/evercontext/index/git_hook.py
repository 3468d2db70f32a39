"""Install git hooks in plain sh that start the indexer after a commit.

The mark is one line appended by the shell itself; everything slower happens in the background, so
that no fault of ours can block or fail a commit. If the indexer cannot be started the mark stays,
and the next scan finds the changes anyway. Our lines stand first in an existing hook, because
some of those end in ``exec``.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evercontext.errors import ConfigError
from evercontext.files.atomic_write import replace_file
from evercontext.files.git_pipes import pipe_for_git
from evercontext.files.small_files import small_bytes
from evercontext.index.location import FOLDER
from evercontext.process.run import run
from evercontext.process.stall_watch import unless_stalled
from evercontext.settings import process_environment

EVENTS = ("post-commit", "post-merge", "post-checkout", "post-rewrite", "post-applypatch")
SPOOL = "spool"
TAKEN = "spool.taken"
BEGIN = "# >>> evercontext >>>"
END = "# <<< evercontext <<<"
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")

_BLOCK = """{begin}
# Leaves a mark and indexes in the background; never blocks, never fails. Remove with:
# evercontext hook uninstall
if [ -d {folder} ] && [ ! -L {folder} ]; then
  if [ -f {spool} ] && [ -s {spool} ] && [ -z "$(find {spool} -mmin +1 2>/dev/null)" ]; then
    : # A mark waits already, and whoever left it has called the indexer.
  else
    if [ ! -L {spool} ] && {{ [ -f {spool} ] || [ ! -e {spool} ]; }}; then
      {{ echo {event} >> {spool}; }} 2>/dev/null || :
    fi
    (
      unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE GIT_PREFIX GIT_OBJECT_DIRECTORY GIT_COMMON_DIR
      ec={program}
      [ -x "$ec" ] || ec=evercontext
      "$ec" hook drain --root {root}
    ) </dev/null >/dev/null 2>&1 &
  fi
fi
{end}
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """What was done to the hooks of a repository."""

    folder: Path
    hooks: tuple[str, ...]
    elsewhere: bool = False
    """True if ``core.hooksPath`` names the folder: other repositories may use it too."""


async def install(root: Path, program: str | None = None) -> Installed:
    """Write our lines into the repository's hooks, beside whatever is there."""
    folder, prefix = await _hooks_of(root)
    folder.mkdir(parents=True, exist_ok=True)
    program = program or shutil.which("evercontext") or _beside_python()
    for event in EVENTS:
        _write(folder / event, _block(event, prefix, program))
    return Installed(folder, EVENTS, bool(await _git(root, "config", "core.hooksPath")))


async def uninstall(root: Path) -> Installed:
    """Take our lines out again; a hook that was only ours goes."""
    folder, _ = await _hooks_of(root)
    removed = []
    for event in EVENTS:
        file = folder / event
        text = _read(file)
        if text is None or BEGIN not in text:
            continue
        rest = _without(text)
        if rest.strip() in ("", "#!/bin/sh"):
            file.unlink()
        else:
            _replace(file, rest)
        aside = file.with_name(f"{event}.before-evercontext")
        if aside.exists():
            aside.replace(file)
        removed.append(event)
    return Installed(folder, tuple(removed))


async def status(root: Path) -> Installed:
    """Return which hooks hold our lines."""
    folder, _ = await _hooks_of(root)
    held = [event for event in EVENTS if BEGIN in (_read(folder / event) or "")]
    return Installed(folder, tuple(held))


def set_marks_aside(folder: Path) -> Path | None:
    """Return a file with the marks that hooks have left, out of the way of new ones.

    It stays until the caller removes it: a caller that dies leaves it to the next.
    """
    spool, taken = folder / SPOOL, folder / TAKEN
    with suppress(OSError):
        if stat.S_ISREG(os.lstat(spool).st_mode):
            spool.replace(taken)
    return taken if taken.is_file() and not taken.is_symlink() else None


async def _hooks_of(root: Path) -> tuple[Path, str]:
    """Return the hooks folder and the root's place below the top of the work tree."""
    inside = await _git(root, "rev-parse", "--is-inside-work-tree")
    if inside.strip() != "true":
        raise ConfigError(f"{root} is not in a git work tree", fix="Run git init, or use --watch")
    hooks = await _git(root, "rev-parse", "--path-format=absolute", "--git-path", "hooks")
    prefix = await _git(root, "rev-parse", "--show-prefix")
    return Path(hooks.removesuffix("\n")), prefix.removesuffix("\n")


async def _git(root: Path, *arguments: str) -> str:
    command = run(("git", *arguments), cwd=root, timeout=20.0, env=_git_environment())
    done = await unless_stalled(command, pipe_for_git, root, process_environment())
    return os.fsdecode(done.stdout) if done.ok else ""


def _git_environment() -> dict[str, str]:
    environment = process_environment()
    return {
        name: environment[name]
        for name in ("PATH", "HOME", "XDG_CONFIG_HOME")
        if name in environment
    }


def _beside_python() -> str:
    return str(Path(sys.executable).with_name("evercontext"))


def _block(event: str, prefix: str, program: str) -> str:
    # Git runs these hooks at the top of the work tree, of whichever work tree committed.
    folder = f"./{prefix}{FOLDER}"
    return _BLOCK.format(
        begin=BEGIN,
        end=END,
        event=event,
        folder=shlex.quote(folder),
        spool=shlex.quote(f"{folder}/{SPOOL}"),
        program=shlex.quote(program),
        root=shlex.quote(f"./{prefix}" if prefix else "."),
    )


def _write(file: Path, block: str) -> None:
    text = _read(file)
    if text is None and file.exists():
        raise ConfigError(f"{file} is no text", fix="Move it away, then install again")
    before = _without(text or "#!/bin/sh\n")
    first, _, rest = before.partition("\n")
    if not _is_shell(first):
        # A hook in another language is kept under another name and called after ours.
        aside = file.with_name(f"{file.name}.before-evercontext")
        file.replace(aside)
        first, rest = "#!/bin/sh", f'exec "$(dirname "$0")/{aside.name}" "$@"\n'
    _replace(file, f"{first}\n{block}{rest}")


def _is_shell(first: str) -> bool:
    words = first.removeprefix("#!").split()
    return first.startswith("#!") and any(Path(word).name in _SHELLS for word in words)


def _without(text: str) -> str:
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < 0:
        return text
    return text[:begin] + text[end + len(END) :].removeprefix("\n")


def _read(file: Path) -> str | None:
    real = file.resolve()  # a link to a hook elsewhere is the user's own
    content = small_bytes(real.parent, real.name)
    try:
        return None if content is None else content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _replace(file: Path, text: str) -> None:
    replace_file(file, text.encode(), mode=0o755, durable=False)
