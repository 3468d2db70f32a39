"""List files that other programs run or obey unasked, and files that hold secrets.

One list for every way to write: REST, MCP, the agent's edits and commands. A *closed* place is
neither read nor written by any of them. A place that *asks* may be read; the agent writes it once a
person has said yes, nobody else does. A command writes neither: what is there is read-only to it,
and what it makes is put away again.

Left out on purpose: files that run only when somebody names the project's own task (Makefile,
package.json, pyproject.toml, conftest.py, Dockerfile), workflows that run on another machine, and
texts that agents read (AGENTS.md, .cursorrules). They are the work the agent is asked for, and a
diff shows them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache

from evercontext.files.path_names import fold


@dataclass(frozen=True, slots=True)
class Place:
    """Names that are protected for one reason. A name with a slash is a name in a folder."""

    names: str
    reason: str
    asks: bool = False
    """May be read, and written once a person has said yes."""
    secret: bool = False
    """A command may not even read it."""
    obeyed: bool = True
    """Some program runs or obeys it: what a command makes of that name is put away."""

    @property
    def patterns(self) -> tuple[str, ...]:
        """The names one by one."""
        return tuple(self.names.split())


PLACES = (
    # closed: a line there is a command that runs later
    Place(".git git~[0-9]*", "git runs hooks and programs that it names"),
    Place(".gitmodules", "git fetches from, and updates by, what it names"),
    Place(".gitconfig", "git runs programs that it names"),
    Place(
        ".hg .svn .jj .bzr .sl .pijul _darcs _mtn .repo .p4config",
        "version control runs hooks and programs that it names",
    ),
    Place(".evercontext .nebula", "EverContext's own", obeyed=False),
    Place("evercontext.toml", "EverContext runs commands that it names"),
    Place(".mcp.json", "agents start the servers that it names"),
    Place(
        ".claude .claude.json .codex .gemini .aider* .continue .cursor .windsurf .kiro .roo"
        " .cline .opencode opencode.json opencode.jsonc .qwen .crush.json crush.json .amazonq"
        " .factory .kilocode .copilot .goose .trae .junie .augment .amp",
        "agents run hooks and servers that it names",
    ),
    Place(".vscode .idea .zed .theia", "editors run tasks and programs that it names"),
    Place(".vimrc .exrc .nvimrc _vimrc _exrc", "vim runs it in this folder"),
    Place(".devcontainer .devcontainer.json", "editors run commands that it names"),
    Place(".envrc .envrc.* .direnv", "direnv runs it on entering the folder"),
    Place(
        ".bashrc .bash_* .profile .zshrc .zshenv .zprofile .zlogin .zlogout .cshrc .tcshrc .kshrc"
        " .login .logout .inputrc .xinitrc .xprofile .xsession",
        "a shell or session runs it",
    ),
    Place(".pythonrc .screenrc .tmux.conf", "a program runs it when it starts"),
    Place(
        ".pdbrc .gdbinit .lldbinit .perldb .byebugrc .rdbgrc .phpdbginit",
        "a debugger runs it when it starts in this folder",
    ),
    Place(
        ".irbrc _irbrc .pryrc .rprofile .renviron .rdata .ghci .ocamlinit .iex.exs .erlang"
        " .octaverc",
        "an interpreter runs it when it starts in this folder",
    ),
    # closed: secrets
    Place(
        ".npmrc .yarnrc*",
        "it holds tokens, and names programs that npm and yarn start",
        secret=True,
    ),
    Place(
        ".env .env.* .env[-_]* .ssh .gnupg .aws .azure .kube .docker .netrc _netrc .pypirc"
        " .pgpass .my.cnf .htpasswd .git-credentials .dockercfg id_rsa* id_dsa* id_ecdsa*"
        " id_ed25519* *.kdbx *.ppk",
        "it holds secrets",
        secret=True,
        obeyed=False,
    ),
    # A command may read these: tests have certificates.
    Place("*.pem *.key *.p12 *.pfx *.jks *.keystore", "it may be a private key", obeyed=False),
    # asks: part of many projects, and run by a program that nobody starts for it
    Place(
        ".husky .githooks .overcommit.yml .git-hooks .simple-git-hooks.* .lintstagedrc*",
        "git hooks run it",
        asks=True,
    ),
    Place(
        "lefthook.yml lefthook.yaml lefthook.toml lefthook.json .lefthook.* lefthook-local.*"
        " .lefthook-local.* .lefthook .lefthook-local",
        "git hooks run it",
        asks=True,
    ),
    Place(
        ".pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml",
        "git hooks run programs that it names",
        asks=True,
    ),
    Place(".gitattributes", "git passes files through programs by it", asks=True),
    Place(".lfsconfig", "git sends files, and a password, to the server that it names", asks=True),
    Place(".github/hooks", "agents run programs that it names", asks=True),
    Place(
        "mise.toml mise.*.toml .mise.toml .mise.*.toml .mise .rtx.toml .tool-versions"
        " mise/config.toml mise/config.*.toml mise/conf.d",
        "a shell takes its programs and variables from it",
        asks=True,
    ),
    Place(".autoenv.zsh .autoenv_leave.zsh", "autoenv runs it on entering the folder", asks=True),
    Place(
        ".nvim.lua .lvimrc .dir-locals.el .dir-locals-2.el *.code-workspace *.sublime-project"
        " .sublime-project .nova .fleet .vs .helix .vim/coc-settings.json .local.vimrc .bsp"
        " .lsp/config.edn .luarc.json .luarc.jsonc .solargraph.yml .ycm_extra_conf.py",
        "an editor runs programs that it names",
        asks=True,
    ),
    Place(
        ".pnpmfile.cjs .pnpmfile.mjs pnpmfile.js .yarn/releases .yarn/plugins .yarn/sdks"
        " .pnp.cjs .pnp.loader.mjs bunfig.toml",
        "a package manager runs it at every command",
        asks=True,
    ),
    Place(".cargo", "cargo runs programs that it names", asks=True),
    Place("sitecustomize.py usercustomize.py", "every Python that starts here runs it", asks=True),
    Place(
        "node_modules bower_components .venv venv .tox .nox site-packages",
        "it is run as code, and no diff shows it",
        asks=True,
        obeyed=False,
    ),
    Place(".terraform", "terraform runs programs in it", asks=True, obeyed=False),
)

CLOSED = tuple(name for place in PLACES if not place.asks for name in place.patterns)


def closed(name: str) -> Place | None:
    """Return why a name is closed, in whatever spelling it comes."""
    return _first(plain(name), False)


def asking(parent: str, name: str) -> Place | None:
    """Return why writing a name in a folder of this name asks."""
    return _first(plain(name), True) or _first(f"{plain(parent)}/{plain(name)}", True)


def is_obeyed(parent: str, name: str) -> bool:
    """Tell whether some program runs or obeys what is called so, unlike a certificate."""
    place = closed(name) or asking(parent, name)
    return place is not None and place.obeyed


def is_secret(name: str) -> bool:
    """Tell whether a file or directory of this name holds secrets."""
    place = closed(name)
    return place is not None and place.secret


def matcher(patterns: Iterable[str]) -> re.Pattern[str]:
    """Return what matches a folded name against any of the patterns."""
    return re.compile("|".join(translate(pattern) for pattern in patterns) or r"(?!)")


def plain(name: str) -> str:
    """The spelling other systems take a name for: they drop what is invisible or at the end."""
    if not name.isascii():
        name = "".join(char for char in name if unicodedata.category(char) != "Cf")
    return fold(name).rstrip(". ") or name


@lru_cache(maxsize=8192)
def _first(plain: str, asks: bool) -> Place | None:
    for place, pattern in _MATCHERS[asks]:
        if pattern.fullmatch(plain):
            return place
    return None


_MATCHERS = {
    asks: [(place, matcher(place.patterns)) for place in PLACES if place.asks is asks]
    for asks in (False, True)
}
