"""Choose packages of tool servers from the Python registry's list of names.

    python -m training.tool_packages TOOLS.json > LIST

Servers that the tool benchmark names are left out; the rest is shuffled with a fixed seed.
"""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

from training.pypi import fetch

MOST = 3500
_TOYS = re.compile(r"test|demo|hello|example|template|sdk|client|proxy|gateway|cli$")


def bare(name: str) -> str:
    """Return what tells one server's name from another's."""
    return re.sub(r"[^a-z0-9]|mcp|server|pypi", "", name.lower())


def main() -> None:
    measured = {bare(tool["serverName"]) for tool in json.loads(Path(sys.argv[1]).read_text())}
    listing = fetch("https://pypi.org/simple/").decode()
    names = [n for n in re.findall(r'<a href="([^/"]+)/"', listing) if "mcp" in n]
    names = [n for n in names if not _TOYS.search(n) and bare(n) not in measured]
    random.Random(7).shuffle(names)
    print("\n".join(names[:MOST]))


if __name__ == "__main__":
    main()
