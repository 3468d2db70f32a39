"""Find abbreviations that are neither common nor explained in the document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from evercontext.evaluation.document_parser import Document
from evercontext.evaluation.issue import Issue, describe

_ACRONYM = re.compile(r"(?<![\w./`-])([A-Z]{3,6})(?![\w./`-])")
_COMMON = """
    AJAX ALL AMD ANSI API ARM ASCII ASGI AWS BIOS BOM BSD CDN CGI CLI CORS CPU CRUD CSRF CSS
    CSV CUDA DHCP DNS DOI DOM DOS EOF EOL ETL FAQ FIFO FPS FTP GCC GCP GDPR GIF GMT GNU GPL GPT
    GPU GUI HDD HTML HTTP HTTPS IBM IDE IETF IMAP INI IOS IPC IRC ISO ISP JPEG JPG JSON JSONL
    JVM JWT KPI LAN LDAP LGPL LLM LRU LTS MAC MCP MIME MIT MPL MVC MVP NASA NFS NPM NTP OAUTH
    OCI OIDC ORM OSS PDF PEP PHP PID PNG POSIX PSF QA RAM RBAC README REPL REST RFC RGB ROM
    RPC RSS RST SAML SDK SFTP SHA SLA SMS SMTP SOAP SPA SQL SSD SSE SSH SSL SSO STDERR STDIN
    STDOUT SVG SVN TCP TLS TOML TTL TTY TUI UDP UID UNIX URI URL URN USA USB UTC UTF UUID VCS
    VPN VPS WAN WASM WIFI WSGI WSL WWW XML XSS YAML ZIP
"""
_WORDS = """
    GET HEAD POST PUT PATCH DELETE TRACE OPTIONS CONNECT ON OFF YES TRUE FALSE NULL NONE NAN
    AND OR NOT SELECT INSERT UPDATE WHERE FROM JOIN INTO CREATE DROP ALTER TABLE INDEX BEGIN
    COMMIT DEBUG INFO WARN ERROR FATAL OK PASS FAIL DONE OPEN CLOSED NEW OLD ANY MAY MUST
    SHALL SHOULD CAN NEVER ALWAYS ONLY BEFORE AFTER EVERY BOTH EACH FIRST LAST NOTE TIP
    WARNING CAUTION DANGER TODO TBD FIXME XXX WIP PLEASE THE THIS THAT USE YOU YOUR ARE WILL
    WITH VERY ALSO BUT FOR NOW HERE
"""
_KNOWN = frozenset((_COMMON + _WORDS).split())
_INLINE = re.compile(r"`[^`\n]{1,1000}`")
_NAME = re.compile(r"[A-Za-z]{3,}")
_EXPLAINED = re.compile(
    r"\s*(?:[(（:：=—–]|-\s|,?\s(?:is|are|means|stands? for|short for)\b|とは|は[、,]|という)"
)


def unexplained(document: Document, base: Path | None) -> Iterator[Issue]:
    """Abbreviations that nobody explained and that the document defines nowhere."""
    known = set(_KNOWN)
    defined: set[str] | None = None
    for paragraph in document.paragraphs:
        for match in _ACRONYM.finditer(paragraph.text):
            word = match[1]
            if word in known:
                continue
            known.add(word)
            defined = _defined(document) if defined is None else defined
            if word not in defined and not _is_explained(paragraph.text, match):
                problem = describe(document, "unexplained", what=word)
                yield Issue("clarity", paragraph.line, 0.02, problem)


def _defined(document: Document) -> set[str]:
    """Names of its code and headings, and words that are written small elsewhere: no riddles."""
    parts = [heading.text for heading in document.headings]
    parts += [fence.code for fence in document.fences]
    prose = " ".join(paragraph.text for paragraph in document.paragraphs)
    names = {name.upper() for part in parts for name in _NAME.findall(part)}
    names |= {name.upper() for code in _INLINE.findall(prose) for name in _NAME.findall(code)}
    return names | {name.upper() for name in _NAME.findall(prose) if not name.isupper()}


def _is_explained(text: str, match: re.Match[str]) -> bool:
    """In brackets, before or after what it stands for, or after words with its initials."""
    before, after = text[max(0, match.start() - 300) : match.start()], text[match.end() :][:20]
    if before.endswith(("(", "（", "(the ", "(an ", "(a ")) or _EXPLAINED.match(after):
        return True
    initials = "".join(word[0] for word in re.findall(r"[A-Za-z]+", before)).upper()
    following = text[match.end() : match.end() + 300]
    initials += " " + "".join(word[0] for word in re.findall(r"[A-Za-z]+", following)).upper()
    return match[1] in initials
