"""Check a document by rules, without understanding it; each finding names its line."""

from __future__ import annotations

import ast
import json
import re
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock

from evercontext.domain.toml import read_toml
from evercontext.evaluation.abbreviations import unexplained
from evercontext.evaluation.document_parser import Document, Fence
from evercontext.evaluation.gibberish import few_words, no_order, said_again
from evercontext.evaluation.issue import Check, Issue, describe
from evercontext.evaluation.judge_messages import phrase

SHORT_WORDS = 60
FULL_WORDS = 800
LONG_SENTENCE_WORDS = 40
LONG_SENTENCE_CHARACTERS = 110
LONG_PARAGRAPH_WORDS = 160
MANY_WORDS = 1000
NEEDS_HEADINGS = 200
LONGEST_CODE = 20_000
_LONGEST_TIMES = 6
_filters = Lock()
# Japanese leaves no space after a word, so its letters end an English one too.
_PLACEHOLDER = re.compile(
    r"(?a:\b)(?:TODO|TBD|FIXME|XXX|WIP|lorem ipsum|coming soon"
    r"|to be (?:written|done|defined))(?a:\b)"
    r"|未定|作成中|準備中|後で書く",
    re.IGNORECASE,
)
_USAGE = re.compile(
    r"usage|using|\buse\b|install|example|quick|start|tutorial|how|set.?up|guide|begin|run"
    r"|\btry(?:ing)?\b|first steps|walk.?through|\bdemos?\b|hands.?on|getting going|in action"
    r"|使い方|使って|使う|使用|利用方法|インストール|導入|セットアップ|例|手順|始め|はじめ|実行"
    r"|試す|試し|試用|ためす|やってみ|動かし|動かす|スタート|チュートリアル|最初の一歩|デモ|入門",
    re.IGNORECASE,
)
_POLITE, _PLAIN = (
    re.compile(r"(?:です|ます|ません|でした|ました)。"),
    re.compile(r"(?:だ|である)。"),
)
_GARBLED = re.compile(r"\ufffd|Ã[\x80-\xbf©¨ª]|â€|縺|繧|ï¿½")
_DRAWN = re.compile(r"[─│┌┐└┘├┤┬┴┼═║▼▲►◄]|\+-{2,}|-{2,}>|<-{2,}|={2,}>")
_ENDS = re.compile(r"[.!?。！？:：)）」』\]`>*_\"'”…|]\s*$")


def too_short(document: Document, base: Path | None) -> Iterator[Issue]:
    """There is hardly anything there."""
    if (new := document.content - document.repeated) < SHORT_WORDS:
        missing = 1 - new / SHORT_WORDS
        remark = describe(document, "short", n=new)
        # It goes on where `thin` begins: a word more never costs anything.
        yield Issue("completeness", 1, 0.25 + 0.45 * missing, remark)


def thin(document: Document, base: Path | None) -> Iterator[Issue]:
    """More than a stub, less than a reader wants."""
    if SHORT_WORDS <= (new := document.content - document.repeated) < FULL_WORDS:
        missing = 1 - new / FULL_WORDS
        remark = describe(document, "thin", n=new)
        yield Issue("completeness", 1, 0.25 * missing, remark)


def no_usage(document: Document, base: Path | None) -> Iterator[Issue]:
    """No section says how to begin."""
    if document.words >= SHORT_WORDS and not any(_USAGE.search(h.text) for h in document.headings):
        yield Issue("usability", 1, 0.1, describe(document, "no usage"))


def no_title(document: Document, base: Path | None) -> Iterator[Issue]:
    """A document begins with what it is."""
    if not any(heading.level == 1 for heading in document.headings):
        weight = 0.05 if document.headings else 0.12
        yield Issue("completeness", 1, weight, describe(document, "no title"))


def empty_sections(document: Document, base: Path | None) -> Iterator[Issue]:
    """A heading promises something."""
    parts = sorted([p.line for p in document.paragraphs] + [f.line for f in document.fences])
    followers = [*document.headings[1:], None]
    for here, following in zip(document.headings, followers, strict=False):
        deeper = following is not None and following.level > here.level
        next_part = bisect_right(parts, here.line)
        filled = next_part < len(parts) and (not following or parts[next_part] < following.line)
        if not deeper and not filled:
            remark = describe(document, "empty section", what=here.text)
            yield Issue("completeness", here.line, 0.12, remark)


def placeholders(document: Document, base: Path | None) -> Iterator[Issue]:
    """Words that say: not written yet."""
    for paragraph in document.paragraphs:
        for match in _PLACEHOLDER.finditer(paragraph.text):
            remark = describe(document, "promise", what=match[0])
            yield Issue("completeness", paragraph.line, 0.25, remark)


def written(document: Document) -> int:
    """Words that say something: a promise to write is none, nor is what was said before."""
    promised = sum(len(_PLACEHOLDER.findall(paragraph.text)) for paragraph in document.paragraphs)
    return max(0, document.content - document.repeated - promised)


def cut_off(document: Document, base: Path | None) -> Iterator[Issue]:
    """The end is missing."""
    last = document.paragraphs[-1] if document.paragraphs else None
    after = max([h.line for h in document.headings] + [f.line for f in document.fences], default=0)
    closing = last and last.line > after and not last.item and len(last.text.split()) > 4
    if last and closing and not _ENDS.search(last.text):
        yield Issue("completeness", last.line, 0.12, describe(document, "cut off"))


def broken_fences(document: Document, base: Path | None) -> Iterator[Issue]:
    """Code that a reader will copy has to parse."""
    for fence in document.fences:
        if not fence.closed:
            yield Issue("usability", fence.line, 0.35, describe(document, "open fence"))
        elif problem := _problem_in(fence):
            remark = describe(document, "broken code", what=fence.language, why=problem)
            yield Issue("usability", fence.line, 0.25, remark)


def _problem_in(fence: Fence) -> str | None:
    if len(fence.code) > LONGEST_CODE:
        return None
    try:
        if fence.language in {"python", "py", "python3"}:
            # The filters belong to the whole process, and documents are judged on several threads.
            with _filters, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _parse_python(fence.code)
        elif fence.language == "json":
            json.loads(fence.code)
        elif fence.language == "toml":
            read_toml(fence.code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        return getattr(problem, "msg", None) or type(problem).__name__
    return None


def _parse_python(code: str) -> None:
    if ">>> " in code or "\n..." in code or "In [" in code:
        return
    lines = code.split("\n")
    indent = min((len(x) - len(x.lstrip()) for x in lines if x.strip()), default=0)
    lines = [line[indent:] for line in lines]
    bare = [line for line in lines if line.strip() != "..."]
    # Three dots stand for anything, also where Python allows none. Fragments may await or return;
    # inside a function they are whole.
    inside = ["async def f():", *(f"    {line}" for line in bare), "    pass"]
    for attempt in (lines, bare):
        with suppress(SyntaxError):
            ast.parse("\n".join(attempt))
            return
    ast.parse("\n".join(inside))


def broken_links(document: Document, base: Path | None) -> Iterator[Issue]:
    """Links that lead nowhere: empty ones, missing anchors, missing files beside the document."""
    anchors = {_anchor(heading.text) for heading in document.headings}
    # Anchors may be made by HTML or by a template, which nobody here can read.
    checkable = not re.search(r"[<{]", document.text)
    for link in document.links:
        target = link.target
        if not target:
            remark = describe(document, "empty link", what=link.text)
            yield Issue("usability", link.line, 0.12, remark)
        elif target.startswith("#"):
            if checkable and _anchor(target[1:]) not in anchors:
                remark = describe(document, "no anchor", what=target)
                yield Issue("usability", link.line, 0.05, remark)
        elif base and not re.match(r"[a-z][a-z0-9+.-]*:|//|/", target, re.IGNORECASE):
            place = target.split("#")[0].split("?")[0]
            if place and not _exists(base / place):
                remark = describe(document, "no file", what=place)
                yield Issue("usability", link.line, 0.08, remark)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False  # a name that no file can have


def _anchor(text: str) -> str:
    return re.sub(r"[^\w]", "", text.lower())


def garbled(document: Document, base: Path | None) -> Iterator[Issue]:
    """Bytes that were read in the wrong encoding."""
    for number, line in enumerate(document.text.split("\n"), start=1):
        if _GARBLED.search(line):
            yield Issue("clarity", number, 0.2, describe(document, "garbled"))


def unbalanced(document: Document, base: Path | None) -> Iterator[Issue]:
    """Brackets and marks that are opened and not closed in one paragraph."""
    for paragraph in document.paragraphs:
        text = re.sub(r"`[^`]{0,1000}`", "", paragraph.text)
        for opening, closing in ("()", "[]", "「」", "（）"):
            if text.count(opening) > text.count(closing):
                remark = describe(document, "unbalanced", what=opening)
                yield Issue("clarity", paragraph.line, 0.04, remark)
        if paragraph.text.count("`") % 2:
            yield Issue("clarity", paragraph.line, 0.04, describe(document, "open mark"))


def long_sentences(document: Document, base: Path | None) -> Iterator[Issue]:
    """Sentences that have to be read twice."""
    for paragraph in document.paragraphs:
        for sentence in paragraph.sentences:
            plain = re.sub(r"\]\([^()]{0,1000}\)|`[^`]{0,1000}`|https?://\S+", "", sentence)
            words, characters = len(plain.split()), len(plain)
            if document.japanese and characters > LONG_SENTENCE_CHARACTERS:
                remark = phrase(True, "long sentence", n=characters)
                times = min(characters / LONG_SENTENCE_CHARACTERS, _LONGEST_TIMES)
                yield Issue("clarity", paragraph.line, 0.08 * times, remark)
            elif words > LONG_SENTENCE_WORDS:
                remark = phrase(False, "long sentence", n=words)
                times = min(words / LONG_SENTENCE_WORDS, _LONGEST_TIMES)
                yield Issue("clarity", paragraph.line, 0.04 * times, remark)


def endless(document: Document, base: Path | None) -> Iterator[Issue]:
    """No sentence ends: whatever it is, no text."""
    longest = max((len(s.split()) for p in document.paragraphs for s in p.sentences), default=0)
    if longest > MANY_WORDS:
        yield Issue("clarity", 1, 0.5, describe(document, "endless", n=longest))


def long_paragraphs(document: Document, base: Path | None) -> Iterator[Issue]:
    """Walls of text."""
    for paragraph in document.paragraphs:
        size = len(paragraph.text.split()) + (len(paragraph.text) // 2 if document.japanese else 0)
        if size > LONG_PARAGRAPH_WORDS:
            yield Issue("clarity", paragraph.line, 0.12, describe(document, "long paragraph"))


def repetition(document: Document, base: Path | None) -> Iterator[Issue]:
    """The same thing said twice."""
    seen: dict[str, int] = {}
    for paragraph in document.paragraphs:
        key = " ".join(paragraph.text.lower().split())
        if len(key) < 40:
            continue
        if key in seen:
            remark = describe(document, "repeated", n=seen[key])
            yield Issue("clarity", paragraph.line, 0.1, remark)
        seen.setdefault(key, paragraph.line)
    counts = Counter((h.level, h.text.lower()) for h in document.headings if h.level <= 2)
    for heading in document.headings:
        if counts[heading.level, heading.text.lower()] > 1:
            counts[heading.level, heading.text.lower()] = 0
            remark = describe(document, "same heading", what=heading.text)
            yield Issue("clarity", heading.line, 0.06, remark)


def heading_jumps(document: Document, base: Path | None) -> Iterator[Issue]:
    """Levels that skip one."""
    for before, heading in zip(document.headings, document.headings[1:], strict=False):
        if heading.level > before.level + 1:
            levels = {"n": before.level, "more": heading.level, "next": before.level + 1}
            remark = describe(document, "jump", **levels)
            yield Issue("clarity", heading.line, 0.03, remark)


def mixed_style(document: Document, base: Path | None) -> Iterator[Issue]:
    """Japanese that changes between polite and plain endings."""
    polite, plain = (len(p.findall(document.text)) for p in (_POLITE, _PLAIN))
    if min(polite, plain) * 5 > max(polite, plain) > 0 and min(polite, plain) > 0:
        yield Issue("clarity", 1, 0.15, describe(document, "mixed"))


def no_structure(document: Document, base: Path | None) -> Iterator[Issue]:
    """Long texts want headings, and something to act on."""
    if document.words > NEEDS_HEADINGS and len(document.headings) < 2:
        yield Issue("usability", 1, 0.25, describe(document, "no headings"))
    if document.words > NEEDS_HEADINGS and not document.fences and not document.links:
        items = any(p.item for p in document.paragraphs)
        remark = describe(document, "nothing to try" if items else "nothing to do")
        yield Issue("usability", 1, 0.1 if items else 0.2, remark)
    if document.content < SHORT_WORDS and not document.fences:
        yield Issue("usability", 1, 0.3, describe(document, "no example"))


def unlabelled(document: Document, base: Path | None) -> Iterator[Issue]:
    """Code without its language, images without words."""
    for fence in document.fences:
        if not fence.language and not _DRAWN.search(fence.code):
            yield Issue("usability", fence.line, 0.02, describe(document, "no language"))
        if not fence.code.strip():
            yield Issue("usability", fence.line, 0.1, describe(document, "empty code"))
    for link in document.links:
        if link.image and not link.text.strip():
            yield Issue("usability", link.line, 0.02, describe(document, "no description"))


CHECKS: tuple[Check, ...] = (
    too_short,
    thin,
    no_title,
    no_usage,
    empty_sections,
    placeholders,
    cut_off,
    broken_fences,
    broken_links,
    garbled,
    unbalanced,
    long_sentences,
    endless,
    long_paragraphs,
    repetition,
    heading_jumps,
    unexplained,
    mixed_style,
    no_structure,
    unlabelled,
    no_order,
    few_words,
    said_again,
)


def examine(document: Document, base: Path | None = None) -> list[Issue]:
    """Every finding, the costliest first."""
    findings = [finding for check in CHECKS for finding in check(document, base)]
    return sorted(findings, key=lambda finding: (-finding.weight, finding.line))
