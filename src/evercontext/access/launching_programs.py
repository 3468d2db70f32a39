"""List programs that run other programs: approving one call approves no other.

``env *`` would allow everything, and a rule for one script allows whatever the script becomes. So
"always" stores no rule for these, and a rule for ``find *`` does not cover ``find -exec``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from evercontext.access.shell_parser import CommandPart

WRAPPERS: Mapping[str, int] = {
    "env": 0,
    "nohup": 0,
    "time": 0,
    "command": 0,
    "exec": 0,
    "nice": 0,
    "xargs": 0,
    "stdbuf": 0,
    "setsid": 0,
    "ionice": 0,
    "builtin": 0,
    "timeout": 1,
}
"""Programs that only start another one, and how many words of their own they take before it."""
SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish", "busybox"))

_STARTS = "starts the program that it is given"
_CODE = "runs the code or script that it is given"
_TASKS = "runs what the project's files say"
_REASONS: Mapping[str, Sequence[str]] = {
    _STARTS: (
        *WRAPPERS,
        "sudo",
        "doas",
        "su",
        "runuser",
        "setpriv",
        "unshare",
        "nsenter",
        "chroot",
        "bwrap",
        "firejail",
        "flatpak",
        "systemd-run",
        "at",
        "batch",
        "crontab",
        "watch",
        "entr",
        "parallel",
        "script",
        "expect",
        "unbuffer",
        "strace",
        "ltrace",
        "gdb",
        "lldb",
        "perf",
        "valgrind",
        "taskset",
        "chrt",
        "flock",
        "run-parts",
        "start-stop-daemon",
        "tmux",
        "screen",
        "npx",
        "pnpx",
        "bunx",
        "uvx",
        "pipx",
        "direnv",
        "dotenv",
        "foreman",
        "honcho",
        "nodemon",
        "hyperfine",
        "mise",
        "asdf",
        "fakeroot",
        "proot",
        "function",
        "coproc",
        "select",
        "trap",
        "alias",
        "eval",
        "source",
        ".",
        "enable",
        "hash",
    ),
    _CODE: (
        *SHELLS,
        "csh",
        "tcsh",
        "pwsh",
        "powershell",
        "python",
        "pypy",
        "ipython",
        "node",
        "nodejs",
        "deno",
        "bun",
        "tsx",
        "ts-node",
        "ruby",
        "irb",
        "perl",
        "php",
        "lua",
        "luajit",
        "Rscript",
        "R",
        "julia",
        "awk",
        "gawk",
        "mawk",
        "nawk",
        "tclsh",
        "wish",
        "osascript",
        "java",
        "jshell",
        "groovy",
        "scala",
        "kotlin",
        "ghci",
        "runghc",
        "elixir",
        "iex",
        "erl",
        "swift",
        "dotnet-script",
        "sqlite3",
        "psql",
        "mysql",
        "vim",
        "vi",
        "nvim",
        "ex",
        "ed",
        "emacs",
        "m4",
        "bc",
        "gnuplot",
    ),
    "can run programs and write files by its script": ("sed", "gsed"),
    "runs commands on another machine": (
        "ssh",
        "rsh",
        "mosh",
        "scp",
        "sftp",
        "ansible",
        "ansible-playbook",
        "kubectl",
    ),
    "runs programs in a container": ("docker", "podman", "nerdctl", "docker-compose"),
    _TASKS: (
        "make",
        "gmake",
        "cmake",
        "ninja",
        "just",
        "task",
        "rake",
        "gradle",
        "gradlew",
        "mvn",
        "mvnw",
        "ant",
        "bazel",
        "scons",
        "invoke",
        "grunt",
        "gulp",
    ),
}
LAUNCHERS = {name: reason for reason, names in _REASONS.items() for name in names}

VERBS: Mapping[str, Sequence[str]] = {
    "npm": ("run", "run-script", "exec", "x", "start", "explore", "init", "create"),
    "pnpm": ("run", "exec", "dlx", "x", "start", "create"),
    "yarn": ("run", "exec", "dlx", "start", "node", "create"),
    "uv": ("run", "tool"),
    "poetry": ("run", "shell"),
    "pdm": ("run",),
    "pipenv": ("run", "shell"),
    "hatch": ("run", "shell"),
    "rye": ("run",),
    "conda": ("run",),
    "cargo": ("run", "watch"),
    "go": ("run", "generate", "tool"),
    "dotnet": ("run", "exec", "watch"),
    "bundle": ("exec",),
    "git": ("bisect", "submodule", "filter-branch", "difftool", "mergetool", "config", "rebase"),
}
"""The second word that makes these run something else."""

OPTIONS: Mapping[str, Sequence[str]] = {
    "git": (
        "-c",
        "--config-env",
        "--exec-path",
        "--upload-pack",
        "--receive-pack",
        "--ext-diff",
        "--textconv",
        "-O",
        "--open-files-in-pager",
        "--output",
        "-x",
        "--exec",
        "--extcmd",
    ),
    "find": (
        "-exec",
        "-execdir",
        "-ok",
        "-okdir",
        "-delete",
        "-fprint",
        "-fprint0",
        "-fprintf",
        "-fls",
    ),
    "fd": ("-x", "-X", "--exec", "--exec-batch"),
    "tar": (
        "--to-command",
        "--checkpoint-action",
        "-I",
        "--use-compress-program",
        "-F",
        "--info-script",
        "--new-volume-script",
        "--rsh-command",
    ),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "sort": ("--compress-program", "-o", "--output"),
    "rg": ("--pre", "--hostname-bin"),
    "zip": ("-T", "-TT", "--unzip-command"),
    "split": ("--filter",),
    "curl": ("-K", "--config", "-o", "-O", "--output", "--remote-name", "-T", "--upload-file"),
    "wget": ("-e", "--execute", "--use-askpass", "-O", "--output-document", "-i", "--post-file"),
    "man": ("-P", "--pager", "-H", "--html"),
    "less": ("-o", "-O", "--log-file"),
    "pip": ("--install-option", "--global-option", "--config-settings"),
    "pytest": ("-p", "-c", "--rootdir", "--confcutdir", "-o", "--override-ini", "--basetemp"),
    "tree": ("-o",),
    "eslint": ("-c", "--config", "--rulesdir", "--resolve-plugins-relative-to", "-o"),
}
"""Options by which a program runs another one, or writes where it is told."""


def reason_for_no_rule(part: CommandPart) -> str | None:
    """Say why consent to this command cannot be given for others like it, or ``None``."""
    if part.unclear:
        return "part of it is only known when it runs"
    if not part.words:
        return None
    name = program_of(part.words[0])
    if "=" in part.words[0]:
        return "a variable set before a program can change what it runs"
    if any(mark in part.spelled[0] for mark in "*?[~{"):
        return "the program is only known when it runs"
    if name in LAUNCHERS:
        return f"{name} {LAUNCHERS[name]}"
    if (verb := first_verb(part.words)) in VERBS.get(name, ()):
        return f"{name} {verb} {_TASKS}"
    option = launching_option(part)
    return f"{name} {option} can run other programs or write elsewhere" if option else None


def launching_option(part: CommandPart) -> str | None:
    """The option by which this command runs another program, or ``None``."""
    if not part.words:
        return None
    name = program_of(part.words[0])
    options = OPTIONS.get(name, ())
    rest = list(part.words[1:])
    if name == "tar" and rest and not rest[0].startswith("-"):
        rest[0] = f"-{rest[0]}"
    for word in rest:
        for option in options:
            if word == option or _begins(word, option):
                return option
    return None


def program_of(word: str) -> str:
    """A program's name without its folder and version: ``python`` for ``/usr/bin/python3.11``."""
    name = PurePosixPath(word).name
    return re.sub(r"(?<=[a-z])[\d.]+$", "", name) or name


def first_verb(words: Sequence[str]) -> str:
    """The first word after the program that is no option."""
    return next((word for word in words[1:] if not word.startswith("-")), "")


def _begins(word: str, option: str) -> bool:
    """True for ``--output=f``, an abbreviation such as ``--outp=f``, ``-of`` and ``-so f``."""
    if option.startswith("--"):
        name = word.partition("=")[0]
        return len(name) > 3 and option.startswith(name)
    short = len(option) == 2 and word.startswith("-") and not word.startswith("--")
    return short and option[1] in word
