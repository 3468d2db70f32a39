"""Write the rules by which secrets are known from those of gitleaks.

    python scripts/secret_rules.py path/to/gitleaks COMMIT

The first argument is a clone of https://github.com/gitleaks/gitleaks (MIT), the second the commit
that is checked out there. What is taken stands in ``src/evercontext/events/data/NOTICE``. Its
own examples of what is and what is not a secret go to ``benchmarks/data/secret_examples.jsonl``.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
DATA = REPOSITORY / "src" / "evercontext" / "events" / "data"
EXAMPLES = REPOSITORY / "benchmarks" / "data" / "secret_examples.jsonl"
OURS = frozenset({"private-key"})
"""Rules that ours does better: this one takes everything up to the end of a second key."""

# What upstream lets follow a token. A log has commas, brackets and Japanese there, too.
NARROW_END = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
WIDE_END = r"(?:[^\w-]|$)"

# A keyword of upstream that is part of ordinary words would send nearly every line of the log to
# the slow look. These stand for it: no text that the rule matches is without its mark.
MARKS = {
    "authress-service-client-access-key": r"\.acc[_-][A-Za-z0-9]",
    "aws-access-token": r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}",
    "1password-service-account-token": r"ops_eyJ",
    "clickhouse-cloud-api-secret-key": r"4b1d[A-Za-z0-9]{38}",
    "generic-api-key": (
        r"(?i)(?:access|auth|api|credential|creds|key|passw(?:or)?d|secret|token)[ \t\w.-]{0,20}"
        r"""[\s'"\\nrt]{0,8}[=>:|,?][\x60'"\s=>:|?\\nrt]{0,12}[\w.=+/-]{10}"""
    ),
    "harness-api-key": r"[ps]at\.[a-zA-Z0-9_-]{22}\.",
    "intra42-client-secret": r"s-s4t2",
    "jwt": r"ey[a-zA-Z0-9]{17,}\.ey",
    "linear-client-secret": r"(?i)linear[^\n]{0,40}[a-f0-9]{32}",
    "lob-api-key": r"(?i)(?:live|test)_[a-f0-9]{35}",
    "lob-pub-api-key": r"(?i)(?:test|live)_pub_[a-f0-9]{31}",
    "octopus-deploy-api-key": r"API-[A-Z0-9]{26}",
    "sendgrid-api-token": r"SG\.[A-Za-z0-9=_\-\.]{66}",
    "square-access-token": r"(?:EAAA|sq0atp-)[\w-]{22}",
    "twilio-api-key": r"SK[0-9a-fA-F]{32}",
    "vault-service-token": r"hvs\.[\w-]{90}|\bs\.[A-Za-z0-9]{24}",
}


def main() -> None:
    """Read upstream's configuration and write ours."""
    clone, commit = Path(sys.argv[1]), sys.argv[2]
    source = tomllib.loads((clone / "config" / "gitleaks.toml").read_text())
    # Rules for files of one name know nothing about a line of a log.
    usable = [rule for rule in source["rules"] if "regex" in rule and "path" not in rule]
    rules = [_rule(rule) for rule in usable if rule["id"] not in OURS]
    content = {
        "source": f"https://github.com/gitleaks/gitleaks at {commit}, MIT, see NOTICE",
        "innocent": source["allowlist"]["regexes"],
        "rules": rules,
    }
    lines = json.dumps(content, indent=1, ensure_ascii=False)
    (DATA / "secret_rules.json").write_text(lines + "\n", encoding="utf-8")
    examples = [*_examples(clone / "cmd" / "generate" / "config" / "rules")]
    EXAMPLES.write_text(
        "".join(json.dumps(example) + "\n" for example in examples), encoding="utf-8"
    )
    sys.stdout.write(f"{len(rules)} of {len(source['rules'])} rules, {len(examples)} examples\n")


def _rule(rule: dict[str, Any]) -> dict[str, Any]:
    marks = MARKS.get(rule["id"]) or "(?i)" + "|".join(map(_literal, rule["keywords"]))
    entry = {
        "id": rule["id"],
        "mark": marks,
        "pattern": rule["regex"].replace(NARROW_END, _end(rule["id"])),
        "entropy": rule.get("entropy", 0),
        "group": rule.get("secretGroup", 0),
    }
    allowed = [_allowed(texts) for texts in rule.get("allowlists", []) if "paths" not in texts]
    return {**entry, **({"allowed": allowed} if allowed else {})}


def _end(rule: str) -> str:
    # The one rule that knows no vendor would take names of code before a comma or a bracket.
    return NARROW_END if rule == "generic-api-key" else WIDE_END


def _literal(text: str) -> str:
    return "".join(c if c.isalnum() or c in "_-~=<@ " else "\\" + c for c in text)


def _allowed(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "target": entry.get("regexTarget", "secret"),
        "patterns": entry.get("regexes", []),
        "words": entry.get("stopwords", []),
    }


_LISTS = re.compile(r"(tps|fps)\s*(?::=|=)\s*(?:append\(\s*[tf]ps,|\[\]string\{)")
_TOKEN = re.compile(r"//[^\n]*|\s+|`([^`]*)`|(\"(?:[^\"\\\n]|\\.)*\")|([{},()+])|([\w.]+)")


def _examples(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the texts that upstream names literally; what it makes at random is left out."""
    for path in sorted(folder.glob("*.go")):
        source = path.read_text()
        for start in _LISTS.finditer(source):
            for text in _literals(source, start.end()):
                yield {"from": path.stem, "secret": start[1] == "tps", "text": text}


def _literals(source: str, at: int) -> Iterator[str]:
    """Yield the entries of a list of strings that are one literal each."""
    entry: list[str | None] = []
    depth = 1
    while depth and (token := _TOKEN.match(source, at)):
        at = token.end()
        raw, quoted, sign, word = token.groups()
        if raw is not None or quoted:
            entry.append(raw if raw is not None else json.loads(quoted))
        elif word or sign in {"+", "{", "("}:
            entry.append(None)
        depth += (sign in {"{", "("}) - (sign in {"}", ")"})
        if (sign == "," and depth == 1) or not depth:
            if len(entry) == 1 and entry[0]:
                yield entry[0]
            entry = []


if __name__ == "__main__":
    main()
