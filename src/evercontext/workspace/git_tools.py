"""Run the few git commands an agent needs, with arguments that cannot become options.

Every call is an argument list that ends with ``--end-of-options`` or ``--``; revisions and paths
are checked before; what a repository's configuration would execute (hooks, monitors, external
diffs, filters, whatever a submodule configures) is switched off.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evercontext.domain.tool import Arguments, Caller, Effect, Tool, ToolResult
from evercontext.errors import PathRefused, ProcessProblem
from evercontext.files.file_tree import Tree
from evercontext.files.git_directories import enclosing, resolve
from evercontext.files.git_pipes import pipe_for_git
from evercontext.files.os_errors import explained
from evercontext.files.path_names import parse
from evercontext.process.child import Confinement
from evercontext.process.environment import filtered
from evercontext.process.run import run
from evercontext.process.stall_watch import unless_stalled
from evercontext.workspace.parameter_schema import boolean, integer, parameters, string, strings

_REVISION = re.compile(r"[\w@][\w./@{}^~+:-]{0,199}")
_SECONDS = 30.0
_PLAIN = ("--no-pager", "--literal-pathspecs", "--no-optional-locks")
_NOTHING_RUNS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "commit.gpgSign=false",
    "log.showSignature=false",
    "protocol.allow=never",
    "diff.submodule=short",
    "status.submoduleSummary=false",
    "submodule.recurse=false",
)
_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color")
_OUTER = "--ignore-submodules=dirty"
"""To look into a submodule, git starts itself there, with that one's settings."""
_RANGE = re.compile(r"(\.{2,3})")


@dataclass(frozen=True, slots=True)
class Git:
    """The repository that a tree lies in; without git or repository the calls raise."""

    tree: Tree
    environment: Mapping[str, str]
    sandbox: Confinement | None = None

    async def status(self) -> str:
        """Return branch and changed files, one per line."""
        return await self._run("status", "--short", "--branch", _OUTER, "--", ".")

    async def diff(
        self, paths: Sequence[str] = (), *, revision: str | None = None, staged: bool = False
    ) -> str:
        """Return the changes against the index, the last commit (staged) or a revision."""
        since = [] if revision is None else ["--end-of-options", await self._commits(revision)]
        what = [*(["--cached"] if staged else []), *since, "--"]
        names = await self._run(
            "diff", "--name-only", "--relative", "-z", _OUTER, *what, *self._paths(paths)
        )
        visible = self._visible(names)
        return await self._run("diff", *_DIFF, _OUTER, *what, *visible) if visible else ""

    async def log(self, count: int = 20, path: str = ".") -> str:
        """Return the latest commits, one per line."""
        form = "--format=%h %ad %an: %s"
        return await self._run(
            "log", f"-n{int(count)}", "--date=short", form, "--", *self._paths([path])
        )

    async def show(self, revision: str) -> str:
        """Return one commit with its changes, or ``revision:path`` as it was then."""
        commit, colon, path = check_revision(revision).partition(":")
        commit = await self._commit(commit)
        what = ["--end-of-options", commit]
        if colon:
            there = f"{commit}:{self._path(path)}"
            return await self._run("show", *_DIFF, "--end-of-options", there)
        names = await self._run("show", "--name-only", "--relative", "--format=", "-z", *what)
        head = await self._run("show", "--no-patch", "--no-color", *what)
        visible = self._visible(names)
        if not visible:
            return head
        return head + await self._run("show", *_DIFF, "--format=", *what, "--", *visible)

    async def commit(self, message: str, paths: Sequence[str]) -> str:
        """Commit exactly these paths as they are now."""
        names = self._paths(paths)
        await self._run("add", "--", *names)
        done = ("commit", "--quiet", "--no-verify", "--file=-", "--", *names)
        await self._run(*done, stdin=message.encode("utf-8", "replace"))
        return await self.log(1)

    async def _commit(self, revision: str) -> str:
        """Return the commit that a revision means: the id of a file or folder would show it."""
        named = f"{check_revision(revision)}^{{commit}}"
        try:
            output = await self._run("rev-parse", "--verify", "--quiet", "--end-of-options", named)
        except ProcessProblem:
            raise ProcessProblem(
                f"no commit {revision[:80]!r}", fix="Give a branch, a tag or a commit"
            ) from None
        return output.split()[-1]

    async def _commits(self, revision: str) -> str:
        """As ``_commit``, for two with dots between them, too."""
        parts = _RANGE.split(check_revision(revision))
        return "".join(
            [p if not p or _RANGE.fullmatch(p) else await self._commit(p) for p in parts]
        )

    def _unfiltered(self) -> dict[str, str]:
        """Return the variables that switch off the filters of this repository."""
        top = next(enclosing(self.tree.root.path), None)
        repository = resolve(top, self.environment) if top else None
        off = {"clean": "", "smudge": "", "process": "", "required": "false"}
        names = sorted(repository.filters) if repository else []
        pairs = [(f"filter.{name}.{key}", value) for name in names for key, value in off.items()]
        variables = {"GIT_CONFIG_COUNT": str(len(pairs))}
        for number, (key, value) in enumerate(pairs):
            variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return variables

    async def _run(self, *arguments: str, stdin: bytes = b"") -> str:
        settings = [part for setting in _NOTHING_RUNS for part in ("-c", setting)]
        unfiltered = await asyncio.to_thread(self._unfiltered)
        command = run(
            ["git", *settings, *_PLAIN, *arguments],
            cwd=self.tree.root.path,
            timeout=_SECONDS,
            env={**filtered(self.environment), "GIT_TERMINAL_PROMPT": "0", **unfiltered},
            stdin=stdin,
            sandbox=self.sandbox,
        )
        root = self.tree.root.path
        done = await unless_stalled(command, pipe_for_git, root, self.environment)
        return done.check().text

    def _visible(self, names: str) -> list[str]:
        """Leave protected files out of what is shown: history keeps secrets, too."""
        policy = self.tree.policy
        listed = [name for name in names.strip("\0\n").split("\0") if name]
        return [n for n in listed if not any(policy.protects(part) for part in n.split("/"))]

    def _paths(self, paths: Sequence[str]) -> list[str]:
        return [self._path(path) for path in paths] or ["."]

    def _path(self, path: str) -> str:
        if path.startswith("-"):
            raise PathRefused("path begins with a dash", fix="Write ./ in front of it")
        parts = parse(path)
        self.tree.policy.check_directory(parts)
        if not parts:
            return "."
        with explained(), self.tree.root.place(parts):  # raises where a link is on the way
            return "./" + "/".join(parts)


def check_revision(revision: str) -> str:
    """Return a revision that git cannot take for an option; PathRefused otherwise."""
    if not _REVISION.fullmatch(revision):
        raise PathRefused("not a revision", fix="Give a branch, a tag or a commit")
    return revision


def git_tools(git: Git) -> list[Tool]:
    """Return the git tools: four that look, one that commits."""

    async def status(arguments: Arguments, caller: Caller) -> ToolResult:
        return _result(await git.status())

    async def diff(arguments: Arguments, caller: Caller) -> ToolResult:
        paths, revision = arguments.get("paths", []), arguments.get("revision")
        staged = arguments.get("staged", False)
        return _result(await git.diff(paths, revision=revision, staged=staged))

    async def log(arguments: Arguments, caller: Caller) -> ToolResult:
        return _result(await git.log(arguments.get("count", 20), arguments.get("path", ".")))

    async def show(arguments: Arguments, caller: Caller) -> ToolResult:
        return _result(await git.show(arguments["revision"]))

    async def commit(arguments: Arguments, caller: Caller) -> ToolResult:
        return _result(await git.commit(arguments["message"], arguments["paths"]))

    paths = strings("Paths relative to the project root (default: everything).")
    revision = string("A branch, tag or commit.", least=1)
    return [
        Tool(
            "git_status",
            "Show the branch and what has changed.",
            parameters({}, required=[]),
            Effect.READ,
            status,
        ),
        Tool(
            "git_diff",
            "Show changes that are not committed, or since a revision.",
            parameters(
                {"paths": paths, "revision": revision, "staged": boolean("Only what is staged.")},
                required=[],
            ),
            Effect.READ,
            diff,
        ),
        Tool(
            "git_log",
            "Show the latest commits.",
            parameters(
                {
                    "count": integer("How many (default 20).", minimum=1),
                    "path": string("Only commits that touch this path."),
                },
                required=[],
            ),
            Effect.READ,
            log,
        ),
        Tool(
            "git_show",
            "Show one commit, or a file as it was: REVISION:PATH.",
            parameters({"revision": revision}, required=["revision"]),
            Effect.READ,
            show,
        ),
        Tool(
            "git_commit",
            "Commit the given paths as they are now. Hooks do not run.",
            parameters(
                {
                    "message": string("The commit message.", least=1),
                    "paths": strings("The paths to commit."),
                },
                required=["message", "paths"],
            ),
            Effect.WRITE | Effect.EXECUTE,
            commit,
        ),
    ]


def _result(text: str) -> ToolResult:
    return ToolResult(text.rstrip("\n") or "nothing", {"output": text})
