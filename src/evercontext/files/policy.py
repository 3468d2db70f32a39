"""Define file policies: kinds of file, sizes, protected paths."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from evercontext.errors import ExtensionRefused, PathRefused, ProtectedPath, TooLarge
from evercontext.files.protected_paths import CLOSED, Place, asking, matcher, plain

MAX_BYTES = 524_288

GATEWAY_EXTENSIONS = frozenset({".py", ".md", ".txt", ".json", ".yaml", ".yml"})

_SOURCE_AND_TEXT = """
    .ada .adb .ads .adoc .agda .asciidoc .asm .astro .awk .bash .bat .bib .bicep .bzl .c .c++
    .cc .cfg .cjs .clj .cljc .cljs .cmake .cmd .coffee .conf .cpp .cr .cs .csproj .css .csv
    .cts .cu .cuh .cxx .cypher .d .dart .diff .dist .dockerfile .dot .edn .el .elm .ejs .eex .erb
    .erl .ex .example .exs .f .f03 .f08 .f90 .f95 .fish .for .fs .fsi .fsproj .fsx .ftl .gd
    .gleam .glsl .go .gql .gradle .graphql .groovy .h .h++ .haml .handlebars .hbs .hcl .heex .hh
    .hlsl .hpp .hrl .hs .htm .html .http .hx .hxx .idr .in .inc .ini .ino .inl .ipynb .j2 .java
    .jinja .jinja2 .jl .js .json .json5 .jsonc .jsonl .jsonnet .jsx .kt .kts .kdl .lean .less .lhs
    .liquid .lisp .lock .log .lua .m .m4 .markdown .md .mdx .mjs .mk .ml .mli .mm .mod .mts
    .mustache .ndjson .nim .nix .njk .odin .org .pas .patch .php .pl .plist .pm .po .pot .pp
    .prisma .pro .properties .proto .ps1 .psd1 .psm1 .pug .purs .pxd .py .pyi .pyx .qml .r
    .rake .rb .re .rego .res .rkt .rmd .ron .rs .rst .s .sample .sass .sbt .sc .scala .scm .scss .sh
    .slim .sln .sol .sql .srt .styl .sum .sv .svelte .svg .svh .swift .t .tcl .templ .template
    .tex .text .tf .tfvars .thrift .tmpl .toml .tpl .ts .tsv .tsx .twig .txt .typ .v .vala .vb
    .vbproj .vert .vhd .vhdl .vim .vtt .vue .wast .wat .wgsl .work .xhtml .xml .xsd .xsl .xslt .yaml
    .yml .zig .zsh
"""
AGENT_EXTENSIONS = frozenset(_SOURCE_AND_TEXT.split()) | {""}
"""Source and text in any language. The empty kind stands for Makefile, LICENSE, .gitignore …"""

PROTECTED = CLOSED

EXEMPT = (".env.example", ".env.sample", ".env.template", ".env.dist")
"""Names that look protected and are meant to be shared."""


@dataclass(frozen=True, slots=True)
class FilePolicy:
    """The rules of one entrance. Paths are relative components, already parsed."""

    extensions: frozenset[str] | None = None
    """Kinds of file that may be opened; ``None`` allows all."""
    max_bytes: int = MAX_BYTES
    protected: tuple[str, ...] = PROTECTED
    exempt: tuple[str, ...] = EXEMPT
    hard_links: bool = False
    """Whether a file with several names may be opened: one of them may be outside the root."""
    ignore_case: bool = False
    """Whether ``.PY`` is the same kind as ``.py``."""

    def check_file(self, parts: tuple[str, ...]) -> None:
        """Raise unless a file of this name may be opened."""
        self.check_directory(parts)
        if not parts:
            raise PathRefused("is a directory")
        if not self.allows_kind(parts[-1]):
            raise ExtensionRefused("extension not allowed", fix=self._allowed())

    def check_directory(self, parts: tuple[str, ...]) -> None:
        """Raise unless this place may be entered."""
        if any(map(_guard(self.protected, self.exempt), parts)):
            raise ProtectedPath("protected path")

    def protects(self, name: str) -> bool:
        """Tell whether a name, in any spelling, is a protected place."""
        return _guard(self.protected, self.exempt)(name)

    def asks(self, parts: tuple[str, ...]) -> Place | None:
        """Return why a person has to approve a change there, if one has to."""
        pairs = zip(("", *parts), parts, strict=False)
        return next((place for pair in pairs if (place := self.asks_name(*pair))), None)

    def asks_name(self, parent: str, name: str) -> Place | None:
        """Return why a person has to approve a change of what is called so in a folder."""
        place = asking(parent, name)
        return place if place and not _opened(self.exempt).fullmatch(plain(name)) else None

    def allows_kind(self, name: str) -> bool:
        """Tell whether this kind of file may be opened."""
        if self.extensions is None:
            return True
        kind = extension(name)
        return (kind.lower() if self.ignore_case else kind) in self.extensions

    def check_size(self, size: int) -> None:
        """Raise TooLarge if ``size`` bytes are over the limit."""
        if size > self.max_bytes:
            raise TooLarge(f"too large: more than {self.max_bytes} bytes")

    @property
    def fingerprint(self) -> str:
        """A short text that is another one for every other policy."""
        kinds = None if self.extensions is None else sorted(self.extensions)
        rules = (
            kinds,
            self.max_bytes,
            self.protected,
            self.exempt,
            self.hard_links,
            self.ignore_case,
        )
        return hashlib.sha256(repr(rules).encode()).hexdigest()[:16]

    def _allowed(self) -> str | None:
        kinds = sorted(self.extensions or ())
        return "Allowed: " + " ".join(kinds) if len(kinds) <= 12 else None


UNRESTRICTED = FilePolicy(max_bytes=1 << 26, protected=(), hard_links=True)
"""For restoring what was once allowed: containment alone."""


def gateway_policy(
    extensions: Iterable[str] | None = None, max_bytes: int = MAX_BYTES
) -> FilePolicy:
    """Return the rules of REST and MCP: a short list of kinds, unless another one is given."""
    kinds = GATEWAY_EXTENSIONS if extensions is None else frozenset(extensions)
    return FilePolicy(extensions=kinds, max_bytes=max_bytes)


def agent_policy(extensions: Iterable[str] | None = None, max_bytes: int = MAX_BYTES) -> FilePolicy:
    """Return the rules of the agent's own door: every kind of source and text."""
    if extensions is not None:
        return gateway_policy(extensions, max_bytes)
    return FilePolicy(extensions=AGENT_EXTENSIONS, max_bytes=max_bytes, ignore_case=True)


AGENT = agent_policy()
"""The agent's rules where nothing is set."""


def extension(name: str) -> str:
    """Return the kind of a file: its last suffix with the dot, or nothing."""
    stem, dot, suffix = name.rpartition(".")
    return dot + suffix if stem.strip(".") else ""


@lru_cache(maxsize=64)
def _guard(protected: tuple[str, ...], exempt: tuple[str, ...]) -> Callable[[str], bool]:
    """Return what tells whether a name is protected; names of a tree come again and again."""
    closed, opened = matcher(protected), _opened(exempt)

    @lru_cache(maxsize=4096)
    def protects(name: str) -> bool:
        folded = plain(name)
        return closed.fullmatch(folded) is not None and not opened.fullmatch(folded)

    return protects


@lru_cache(maxsize=64)
def _opened(exempt: tuple[str, ...]) -> re.Pattern[str]:
    return matcher(exempt)
