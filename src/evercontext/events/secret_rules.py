"""The rules by which a text is known to hold a secret: those of gitleaks, and some of our own.

Every pattern is for RE2, whose time grows with the text alone, whatever the text is.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import resources
from typing import Any

Check = Callable[[str], bool]
"""True if a text that a pattern matched is a secret indeed."""
_LABELLED = r"(?i)[\w.-]{0,50}?"
"""How a rule of gitleaks begins that knows a secret by the name before it."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Texts that a rule matches and that are no secrets."""

    target: str
    """What is looked at: ``secret``, ``match`` or ``line``."""
    patterns: tuple[str, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class SecretRule:
    """One kind of secret."""

    id: str
    mark: str
    """A cheaper pattern, which every text with such a secret matches."""
    pattern: str = ""
    """What the secret is, or its first group that is not empty; the mark where there is none."""
    entropy: float = 0
    group: int = 0
    allowed: tuple[Allowed, ...] = ()
    check: Check | None = None
    labelled: bool = False
    """The name before it tells, and not its own shape."""
    innocent: tuple[str, ...] = field(default=(), repr=False)

    @cached_property
    def compiled(self) -> Any:
        """The pattern, ready to use."""
        return compiled(self.pattern or self.mark)

    @cached_property
    def excused(self) -> list[tuple[str, Any]]:
        """Targets and patterns of what is no secret."""
        pairs = [(entry.target, p) for entry in self.allowed for p in entry.patterns]
        pairs += [("secret", pattern) for pattern in self.innocent]
        return [(target, compiled(pattern)) for target, pattern in pairs]

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield begin and end of every secret of this kind."""
        for match in self.compiled.finditer(data):
            group = self.group or next((n for n, g in enumerate(match.groups(), 1) if g), 0)
            begin, end = match.span(group)
            if begin < end and self._is_secret(data, match.span(), (begin, end)):
                yield begin, end

    def _is_secret(self, data: bytes, match: tuple[int, int], secret: tuple[int, int]) -> bool:
        text = data[slice(*secret)].decode("utf-8", "replace")
        if self.entropy and entropy(text) <= self.entropy:
            return False
        if self.check and not self.check(text):
            return False
        lower = text.lower()
        if any(word in lower for entry in self.allowed for word in entry.words):
            return False
        if not self.excused:
            return True
        first, last = data.rfind(b"\n", 0, match[0]) + 1, data.find(b"\n", match[1])
        line = data[
            max(first, match[0] - 500) : min(last if last >= 0 else len(data), match[1] + 500)
        ]
        targets = {"secret": data[slice(*secret)], "match": data[slice(*match)], "line": line}
        return not any(pattern.search(targets[target]) for target, pattern in self.excused)


def entropy(text: str) -> float:
    """Bits of each character, as Shannon counts them."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values())


def _is_login(text: str) -> bool:
    """True for name and password in base64, as the header of a request has them."""
    try:
        login = base64.b64decode(text, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return False
    return ":" in login.strip(":") and login.isprintable()


_PLACEHOLDER = re.compile(
    r"""(?xi) [$%<{*\[] | \*+$ | x+$ | \.+$ | .*(?:\$\{|\{\{|\#\{|%\(|<[a-z])
    | (?:the|your|my|new|old|some|this)[_-]
    | [a-z_]*(?:passw(?:or)?d|passphrase|passcode|secret)s?[0-9]?$
    | (?:str|string|none|null|nil|true|false|undefined|required|optional|empty|hidden|redacted|bool
         |masked|boolean|text|int|integer|number|any|object|bytes|field|input|value|default|example
         |sample|dummy|unset|unknown|missing|invalid|valid|wrong|incorrect|prompt|plain|hash|hashed
         |encrypted|pass|token|repo|port)\??$
    | [a-z_]\w*(?:\.[a-z_]\w*)+$ | [a-z_][\w.]*\(
    """
)
_LETTER = re.compile(r"[A-Za-z]")
_OTHER = re.compile(r"[0-9!@#%^&*+?~$]")


def _is_chosen(text: str) -> bool:
    """True for what may be a password that somebody chose, and hardly the name of a thing."""
    if _PLACEHOLDER.match(text):
        return False
    return bool(_LETTER.search(text) and _OTHER.search(text))


def _is_quoted_choice(text: str) -> bool:
    return _is_chosen(text) or (
        len(text) >= 6
        and text.isascii()
        and text.isalpha()
        and text.islower()
        and not _PLACEHOLDER.match(text)
    )


def _has_digit_and_letter(text: str) -> bool:
    return bool(re.search(r"[0-9]", text) and _LETTER.search(text)) and entropy(text) > 3.3


def _is_not_a_word(text: str) -> bool:
    return not re.match(r"(?i)(?:authenticat|authoriz|credential|token)[a-z]*s?$", text)


_LABEL_MARK = r"(?i)passw(?:or)?d|passphrase|passcode|pwd"
_LABEL = r"(?i)(?:\b|_|-|[a-z])(?:passw(?:or)?d|passphrase|passcode|pwd)"
_SAYS = r"""[ \t]{0,3}(?:=>|:=|[:=])[ \t]{0,3}"""
OWN = (
    SecretRule(
        "private-key-block",
        r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?"
        r"(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    SecretRule("evercontext-token", r"\bec_[A-Za-z0-9_-]{32,}", check=_has_digit_and_letter),
    SecretRule("vendor-key", r"\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{16,}"),
    SecretRule("stripe", r"\b(?:[spr]k_(?:live|test|prod)|whsec)_[A-Za-z0-9+/]{10,}"),
    SecretRule("github", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    SecretRule("gitlab", r"\bglpat-[A-Za-z0-9_\-]{16,}"),
    SecretRule("slack", r"\bxox[abeoprs]-[A-Za-z0-9\-]{10,}"),
    SecretRule("huggingface", r"\bhf_[A-Za-z0-9]{20,}"),
    SecretRule("aws", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    SecretRule(
        "aws-secret",
        r"(?i)(?:aws[\w.-]{0,20}secret|secret[_.-]?access[_.-]?key)",
        r"""(?i)(?:aws[\w.-]{0,20}secret|secret[_.-]?access)[\w.-]{0,20}["'\\]{0,3}[ \t]{0,3}"""
        r"""(?:=>|:=|[:=]|\s)[ \t]{0,3}["'\\]{0,3}([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|\z)""",
        labelled=True,
    ),
    SecretRule("google", r"\bAIza[A-Za-z0-9_\-]{30,}"),
    SecretRule("npm", r"\bnpm_[A-Za-z0-9]{30,}"),
    SecretRule("sendgrid", r"\bSG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}"),
    SecretRule(
        "azure-key",
        r"(?i)(?:AccountKey|SharedAccessKey|AccessKey)=[A-Za-z0-9+/]{43}",
        r"(?i)(?:AccountKey|SharedAccessKey|AccessKey)=([A-Za-z0-9+/]{43,88}={0,2})",
    ),
    SecretRule("azure-client", r"\b[a-zA-Z0-9_~.]{3}\dQ~[a-zA-Z0-9_~.-]{31,34}"),
    SecretRule("square", r"\bsq0(?:atp|csp|idp)-[\w-]{22,}"),
    SecretRule(
        "hexadecimal-token",
        r"(?i)(?:token|secret|api.?key|access.?key)[^\n]{0,40}[a-f0-9]{32}",
        r"""(?i)(?:token|secret|api[_-]?key|access[_-]?key)[\w.-]{0,20}["'\\]{0,3}[ \t]{0,3}"""
        r"""(?:=>|:=|[:=])[ \t]{0,3}["'\\]{0,3}([a-f0-9]{32,64})(?:[^\w-]|\z)""",
        entropy=3,
        labelled=True,
    ),
    SecretRule(
        "azure-signature",
        r"(?i)[?&]sig=[A-Za-z0-9%+/]{40}",
        r"(?i)[?&]sig=([A-Za-z0-9%+/]{40,}={0,2})",
    ),
    SecretRule(
        "discord-bot", r"\b[MNO][A-Za-z\d_-]{23,27}\.[A-Za-z\d_-]{6,7}\.[A-Za-z\d_-]{27,40}"
    ),
    SecretRule(
        "discord-webhook",
        r"(?i)discord(?:app)?\.com/api/webhooks/",
        r"(?i)discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{15,20}/([A-Za-z0-9_-]{40,})",
    ),
    SecretRule("age", r"AGE-SECRET-KEY-(?:1|PQ-1)[0-9A-Z]{40,}"),
    SecretRule("jwt-any", r"eyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*"),
    SecretRule(
        "bearer",
        r"[Bb]earer [A-Za-z0-9._~+/\-]{12}",
        r"[Bb]earer ([A-Za-z0-9._~+/\-]{12,}=*)",
        check=_is_not_a_word,
    ),
    SecretRule(
        "basic-login",
        r"[Bb]asic[ \t]+[A-Za-z0-9+/]{8}",
        r"[Bb]asic[ \t]+([A-Za-z0-9+/]{8,}={0,2})",
        check=_is_login,
    ),
    SecretRule(
        "password-in-address",
        r"""://[^\s/:@'"<>\x60]*:[^\s/'"<>\x60]{3,}@""",
        r"""[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@'"<>\x60]*:([^\s/'"<>\x60]{3,})@""",
        check=lambda text: not _PLACEHOLDER.match(text),
    ),
    SecretRule(
        "password-quoted",
        _LABEL_MARK,
        _LABEL
        + r"""[\w.-]{0,20}\\?["']?"""
        + _SAYS
        + r"""\\?["'\x60]([^\s"'\x60\\]{4,100})\\?["'\x60]""",
        check=_is_quoted_choice,
        labelled=True,
    ),
    SecretRule(
        "password-plain",
        _LABEL_MARK,
        _LABEL
        + r"""[\w.-]{0,20}["']?(?:[ \t]{1,3}is[ \t]{1,3}|"""
        + _SAYS
        + r"""|[ \t]{1,3})([^\s"'\x60,;(){}\[\]<>|\\&]{6,100})(?:[\s"'\x60,;&\\]|\z)""",
        check=_is_chosen,
        labelled=True,
    ),
    SecretRule(
        "password-japanese",
        "(?:パスワード|暗証番号|秘密鍵)",
        r"(?:パスワード|暗証番号|秘密鍵)(?:は|＝|：|:|=|[ \t])[ \t　]{0,3}[「'\"\x60]?"
        r"([!-&*-~]{6,100})",
        check=_is_chosen,
        labelled=True,
    ),
)


def compiled(pattern: str) -> Any:
    """Return a pattern of RE2 over UTF-8."""
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern.encode(), options=options)


@lru_cache(maxsize=1)
def rules() -> tuple[SecretRule, ...]:
    """All rules, our own first."""
    text = resources.files(__package__).joinpath("data", "secret_rules.json").read_text("utf-8")
    content = json.loads(text)
    innocent = tuple(content["innocent"])
    return (*OWN, *(_from_json(entry, innocent) for entry in content["rules"]))


def _from_json(entry: dict[str, Any], innocent: tuple[str, ...]) -> SecretRule:
    allowed = tuple(
        Allowed(texts["target"], tuple(texts["patterns"]), tuple(texts["words"]))
        for texts in entry.get("allowed", ())
    )
    labelled = entry["pattern"].startswith(_LABELLED)
    number, group = entry["entropy"], entry["group"]
    return SecretRule(
        entry["id"],
        entry["mark"],
        entry["pattern"],
        number,
        group,
        allowed,
        None,
        labelled,
        innocent if labelled else (),
    )


class RuleSet:
    """Some rules, looked for together."""

    def __init__(self, members: Iterable[SecretRule]) -> None:
        self._rules = tuple(members)

    @cached_property
    def marks(self) -> str:
        """One pattern that every text with one of the secrets matches."""
        return "|".join(sorted({f"(?:{rule.mark})" for rule in self._rules}))

    @cached_property
    def _mark(self) -> Any:
        return compiled(self.marks)

    @cached_property
    def _kinds(self) -> Any:
        import re2

        options = re2.Options()
        options.log_errors = False
        kinds = re2.Set.SearchSet(options)
        for rule in self._rules:
            kinds.Add(rule.mark)
        kinds.Compile()
        return kinds

    def may_hold(self, data: bytes) -> bool:
        """True if the text deserves a closer look; nearly none does."""
        return self._mark.search(data) is not None

    def candidates(self, data: bytes) -> list[SecretRule]:
        """The rules whose mark is in the text."""
        # The set finds nothing when it runs out of memory; then each is looked for by itself.
        numbers = self._kinds.Match(data)
        if numbers:
            return [self._rules[number] for number in sorted(numbers)]
        if not self.may_hold(data):
            return []
        return [rule for rule in self._rules if compiled(rule.mark).search(data)]

    def spans(
        self, data: bytes, candidates: Iterable[SecretRule] | None = None
    ) -> list[tuple[int, int]]:
        """Begin and end of every secret, in order and apart from each other."""
        if candidates is None:
            candidates = self.candidates(data)
        merged: list[tuple[int, int]] = []
        for begin, end in sorted(span for rule in candidates for span in rule.spans(data)):
            if merged and begin <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((begin, end))
        return merged


@lru_cache(maxsize=1)
def every_rule() -> RuleSet:
    """The rules for what is written down."""
    return RuleSet(rules())


@lru_cache(maxsize=1)
def shape_rules() -> RuleSet:
    """The rules that need no name before the secret: for source code, which is full of names."""
    return RuleSet(rule for rule in rules() if not rule.labelled)
