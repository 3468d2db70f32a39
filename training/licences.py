"""Which licences may be learned from: permissive ones, read from a package's own metadata."""

from __future__ import annotations

import re

_PERMISSIVE = re.compile(
    r"^(mit|mit[-_ /].*|expat|x11|isc|zlib|libpng|bsd.*|[023]-clause.*|new bsd.*|simplified bsd.*|"
    r"0bsd|"
    r"apache.*|asl[- ]?2.*|psf.*|python.*|cnri.*|unlicense|cc0.*|public[- ]?domain|pd|bsl-1\.0|"
    r"boost.*|postgresql|unicode.*|wordnet.*|wtfpl.*|ruby|artistic-2\.0|zpl.*|hpnd.*|ncsa|"
    r"blueoak.*|upl-1\.0|curl|dom4j|w3c|openssl|go|bsd|the mit.*|mit license.*|"
    r"historical permission.*)$"
)
_COPYLEFT = re.compile(
    r"gpl|mpl|epl|cddl|cc-by|cc by|creative commons|eupl|osl|cecill|proprietary"
    r"|commercial|elastic|busl|sspl|fair|polyform|gfdl|non-?commercial",
    re.I,
)


def permits(name: str) -> bool:
    """True if one licence name, or one of the alternatives it offers, is permissive."""
    name = name.strip().strip("()").lower()
    name = re.sub(r"\s+(license|licence|software license)$", "", name)
    if " and " in name or "," in name:
        return all(permits(part) for part in re.split(r"\s+and\s+|,\s*", name) if part.strip())
    if re.search(r"\s(or|\|)\s|/(?=apache|mit)", name):
        return any(permits(part) for part in re.split(r"\s+(?:or|\|)\s+|/", name))
    if _COPYLEFT.search(name) and not name.startswith("ruby"):
        return False
    return bool(_PERMISSIVE.match(name.replace("license :: osi approved :: ", "")))


def debian_licences(copyright_file: str) -> list[str] | None:
    """Return the licence of every stanza for upstream files, or None if no machine can read it."""
    if "copyright-format" not in copyright_file[:600]:
        return None
    found = []
    for stanza in re.split(r"\n\s*\n", copyright_file):
        files = re.search(r"^Files:\s*((?:.|\n[ \t])+)", stanza, re.M)
        licence = re.search(r"^License:[ \t]*(\S.*)$", stanza, re.M)
        if files is None or licence is None:
            continue
        if not all(name.startswith("debian/") for name in files[1].split()):
            found.append(licence[1])
    return found or None


def python_licence(info: dict[str, object]) -> str | None:
    """Return the permissive licence that package metadata names, or None."""
    expression = str(info.get("license_expression") or "")
    if expression:
        return expression if permits(expression) else None
    named = [str(c) for c in (info.get("classifiers") or []) if str(c).startswith("License ::")]  # type: ignore[attr-defined]
    named = [c.rpartition(":: ")[2] for c in named if not c.endswith("OSI Approved")]
    if named:
        return " and ".join(named) if all(permits(n) for n in named) else None
    text = str(info.get("license") or "").strip()
    first = text.splitlines()[0].strip() if text else ""
    return first if first and len(first) < 60 and permits(first) else None
