"""List what a rewrite would remove from a document: sections, code, numbers and words.

A judge scores what is there and cannot miss what is not. A rewrite may order, rename, shorten and
correct; it may not throw the document away, whatever score the rest would get.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt

from evercontext.evaluation.document_parser import Document, Heading
from evercontext.retrieval.terms import STOP_WORDS, fold, runs, terms_of

MOST = 0.5
"""With so much of its sections, code or numbers gone, most of a document is lost."""
LEAST_SECTIONS = 3
LEAST_NUMBERS = 4
LEAST_WORDS = 8
"""Of fewer there is nothing that a rewrite could be held to."""
SAME_SUBJECT = 0.65
"""How alike the weights of its words are, where 1 is the same. Of two unrelated manuals (700 pairs
of Python packages) half are below 0.48, 19 of 20 below 0.67; rewrites of one are above 0.89."""
TIMES_NAMED = 2
SECTION_KEPT = 0.6
"""So many of a section's words elsewhere: it was moved or renamed, not lost."""
MOST_NAMED = 5
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:[.:/-]\d+)*")
_ORDINAL = re.compile(r"^\s*(?:[-*+•]\s+|\d{1,3}(?:\.\d{1,3}){0,3}[.)]?\s+)")
_TARGET = re.compile(r"\]\([^()]{0,1000}\)|https?://\S+")
_CODE = re.compile(r"`[^`\n]{1,1000}`|^(?: {4}|\t).{1,1000}$", re.MULTILINE)
_DRAWN = ("", "text", "txt", "mermaid", "ascii", "plantuml", "dot")
_SPELLED = {
    "0": "zero",
    "1": "one 一",
    "2": "two 二",
    "3": "three 三",
    "4": "four 四",
    "5": "five 五",
    "6": "six 六",
    "7": "seven 七",
    "8": "eight 八",
    "9": "nine 九",
    "10": "ten 十",
    "12": "twelve 十二",
    "20": "twenty 二十",
    "30": "thirty 三十",
    "60": "sixty 六十",
    "100": "hundred 百",
    "1000": "thousand 千",
}
_REFUSAL = re.compile(
    r"\bI(?:'m| am|’m)?\s+(?:really |very |so )?sorry\b"
    r"|\bI\s+(?:cannot|can't|can’t|can not|won't|won’t|will not|am unable|am not able)\b"
    r"|\bI(?:'m|’m)\s+(?:unable|not able|afraid)\b"
    r"|\bas an? (?:AI|language model|assistant)\b|\bunable to (?:help|assist|comply|fulfil)"
    r"|申し訳(?:ありません|ございません)|お手伝い(?:は)?できません|お(?:答え|応え)(?:は)?できません"
    r"|対応(?:することが)?できません|ご要望には",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Loss:
    """Something of one kind that is gone."""

    text: str
    most: bool
    """True if most of its kind is gone: such a rewrite is not taken."""


def losses(before: str, after: str) -> list[Loss]:
    """Everything that ``after`` no longer has of ``before``, the worst first."""
    if refusal := _refusal(before, after):
        return [refusal]
    old, new = Document.parse(before), Document.parse(after)
    counts = _counts(_text_of(new))
    there = set(counts)
    lost = [
        *_lost_subject(_counts(_text_of(old)), counts),
        *_lost_name(old, counts),
        *_lost_sections(old, new, there),
        *_lost_code(old, new, there),
        *_lost_numbers(old, after),
    ]
    return sorted(lost, key=lambda loss: not loss.most)


def _refusal(before: str, after: str) -> Loss | None:
    """A model that says no instead of writing; what the document itself says is no refusal."""
    paragraphs = [p.text for p in Document.parse(after).paragraphs]
    for text in [*paragraphs[:1], *paragraphs[-1:]]:
        spoken = _REFUSAL.search(text[:300])
        if spoken and spoken[0].lower() not in before.lower():
            return Loss(f'everything to a refusal: "{text[:80]}"', most=True)
    return None


def _text_of(document: Document) -> str:
    parts = [
        *(heading.text for heading in document.headings),
        *(paragraph.text for paragraph in document.paragraphs),
        *(fence.code for fence in document.fences),
    ]
    return "\n".join(parts)


def _counts(text: str) -> Counter[str]:
    terms = (term for run in runs(fold(text)) for term in terms_of(run))
    return Counter(term for term in terms if len(term) > 1 and term not in STOP_WORDS)


def _terms(text: str) -> set[str]:
    return set(_counts(text))


def _lost_subject(old: Counter[str], new: Counter[str]) -> list[Loss]:
    """The cosine of both over the old words alone: what was added takes nothing away."""
    if len(old) < LEAST_WORDS:
        return []
    here = {word: 1 + log(count) for word, count in old.items()}
    there = {word: 1 + log(new[word]) for word in old if new[word]}
    shared = sum(here[word] * weight for word, weight in there.items())
    if shared >= SAME_SUBJECT * _length(here) * _length(there) and there:
        return []
    left = len(there) / len(old)
    return [Loss(f"its subject: {left:.0%} of its words are left, this is another text", most=True)]


def _lost_name(old: Document, new: Counter[str]) -> list[Loss]:
    """What the title names and the text speaks of, and the new text does not mention once."""
    title = next((heading.text for heading in old.headings if heading.level == 1), "")
    counts = _counts(_text_of(old))
    names = {term for term in _terms(title) if counts[term] > TIMES_NAMED}
    if not names or any(new[name] for name in names):
        return []
    return [Loss(f'its subject: nothing is left of "{title[:80]}"', most=True)]


def _length(weights: Mapping[str, float]) -> float:
    return sqrt(sum(weight * weight for weight in weights.values()))


def _lost_sections(old: Document, new: Document, there: set[str]) -> list[Loss]:
    named = {_plain(heading.text) for heading in new.headings}
    sections = [heading for heading in old.headings if _plain(heading.text)]
    lost = [
        heading.text
        for heading, terms in zip(sections, _section_terms(old, sections), strict=True)
        if _plain(heading.text) not in named and not _mostly(terms, there, SECTION_KEPT)
    ]
    return _report("section", lost, len(sections), LEAST_SECTIONS)


def _section_terms(document: Document, sections: Sequence[Heading]) -> list[set[str]]:
    """The words of each section, its heading's among them."""
    texts = [[heading.text] for heading in sections]
    starts = [heading.line for heading in sections]
    parts = [(p.line, p.text) for p in document.paragraphs]
    for line, text in parts + [(fence.line, fence.code) for fence in document.fences]:
        at = bisect_right(starts, line) - 1
        if at >= 0:
            texts[at].append(text)
    return [_terms("\n".join(lines)) for lines in texts]


def _lost_code(old: Document, new: Document, there: set[str]) -> list[Loss]:
    """Blocks of code of which most names are nowhere any more; corrected ones keep theirs."""
    code = _terms("\n".join([*(fence.code for fence in new.fences), *_CODE.findall(new.text)]))
    blocks = [(f, terms) for f in old.fences if (terms := _terms(f.code))]
    lost = [
        f"line {fence.line}"
        for fence, terms in blocks
        # A diagram may become a table or a list; code is lost where it is only spoken of.
        if not _mostly(terms, there if fence.language in _DRAWN else code, MOST)
    ]
    return _report("code block", lost, len(blocks), 1)


def _lost_numbers(old: Document, after: str) -> list[Loss]:
    lines = [h.text for h in old.headings] + [p.text for p in old.paragraphs]
    bare = [_ORDINAL.sub("", _TARGET.sub("", fold(line))) for line in lines]
    numbers = list(dict.fromkeys(n for line in bare for n in _NUMBER.findall(line)))
    folded = fold(after)
    there = {_digits(number) for number in _NUMBER.findall(folded)}
    words = set(re.findall(r"[a-z]+|[一二三四五六七八九十百千]+", folded.lower()))
    lost = [
        number
        for number in numbers
        if _digits(number) not in there and not words & set(_SPELLED.get(number, "").split())
    ]
    return _report("number", lost, len(numbers), LEAST_NUMBERS)


def _digits(number: str) -> str:
    return number.replace(",", "")


def _plain(text: str) -> str:
    return re.sub(r"\W", "", fold(text).lower())


def _mostly(terms: set[str], there: set[str], share: float) -> bool:
    return len(terms & there) >= share * len(terms)


def _report(kind: str, lost: Sequence[str], total: int, least: int) -> list[Loss]:
    if not lost:
        return []
    most = len(lost) >= MOST * total and (total >= least or len(lost) == total > 1)
    named = ", ".join(lost[:MOST_NAMED])
    more = f" and {len(lost) - MOST_NAMED} more" if len(lost) > MOST_NAMED else ""
    plural = "" if total == 1 else "s"
    return [Loss(f"{len(lost)} of {total} {kind}{plural}: {named}{more}", most)]
