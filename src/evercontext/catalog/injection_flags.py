"""Flag descriptions that give orders to a model instead of describing a tool.

A description is text of a stranger. What is found here is shown to the user and put beside the
tool; nothing is hidden and nothing is decided by it, for no list of words is complete.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

MOST_FLAGS = 8
_LONGEST = 60
_PHRASES = re.compile(
    r"""
      (?:ignore|disregard|forget|override)\s+(?:\w+\s+){0,3}(?:instructions?|rules?|prompts?)
    | (?:do\s+not|don't|never)\s+(?:\w+\s+){0,2}(?:tell|mention|inform|reveal|show|notify)
    | (?:without|before)\s+(?:telling|asking|informing)\s+(?:the\s+)?user
    | </?(?:important|system|instructions?|secret|admin)\b[^>]{0,20}>
    | (?:system|developer)\s+(?:prompt|message)
    | you\s+(?:must|should|have\s+to)\s+(?:always|first|also|never)
    | (?:before|instead\s+of)\s+(?:using|calling)\s+(?:any|this|other|the)\s+(?:\w+\s+)?tools?
    | ~?/\.ssh\b | \bid_(?:rsa|ed25519)\b | \.env\b | /etc/passwd\b | \.aws/credentials\b
    | \bcurl\b[^\n]{0,80}\|\s*(?:ba)?sh\b
    | (?:以前|これまで|上記|すべて)の(?:指示|命令|ルール)を(?:無視|忘れ)
    | (?:ユーザー|利用者)に(?:は)?(?:知らせ|教え|伝え|言わ)(?:ず|ない|るな)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_UNSEEN = re.compile("[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")


@lru_cache(maxsize=4096)
def flagged(text: str) -> tuple[str, ...]:
    """Return what a user should look at, as it stands there; empty if there is nothing."""
    plain = unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
    flags = [" ".join(match[0].split())[:_LONGEST] for match in _PHRASES.finditer(plain)]
    if _UNSEEN.search(text):
        flags.append("characters that cannot be seen")
    if any(unicodedata.category(char) == "Cc" and char not in "\n\r\t" for char in text):
        flags.append("control characters")
    return tuple(dict.fromkeys(flags))[:MOST_FLAGS]
