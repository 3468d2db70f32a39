"""Download permissively licensed packages of the JavaScript registry.

    python -m training.npm DIRECTORY LIST...

A list holds one ``name`` or ``name@version`` a line; the licence is the one in package.json.
"""

from __future__ import annotations

import concurrent.futures
import json
import sys
from pathlib import Path
from urllib.parse import quote

from training.exclusions import is_benchmark_package
from training.licences import permits
from training.pypi import fetch


def download(target: Path, wish: str) -> None:
    """Bring one package if its licence permits."""
    name, _, version = wish.rpartition("@") if "@" in wish[1:] else (wish, "", "latest")
    goal = target / f"{wish.replace('/', '+')}.json"
    if goal.exists() or is_benchmark_package(name):
        return
    try:
        about = json.loads(fetch(f"https://registry.npmjs.org/{quote(name, safe='@')}/{version}"))
        licence = about.get("license")
        licence = licence.get("type") if isinstance(licence, dict) else licence
        if not licence or not permits(str(licence)):
            goal.write_text(json.dumps({"name": name, "licence": None, "said": str(licence)}))
            return
        file = f"{wish.replace('/', '+')}.tgz"
        (target / file).write_bytes(fetch(about["dist"]["tarball"]))
    except (OSError, ValueError, KeyError) as error:
        print(f"{wish}: {error}", file=sys.stderr)
        return
    goal.write_text(
        json.dumps(
            {
                "name": name,
                "version": about["version"],
                "licence": licence,
                "file": file,
                "summary": about.get("description"),
            }
        )
    )


def main() -> None:
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    wishes = [
        w.strip() for f in sys.argv[2:] for w in Path(f).read_text().splitlines() if w.strip()
    ]
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda wish: download(target, wish), wishes))
    print(len(list(target.glob("*.json"))), "packages looked at")


if __name__ == "__main__":
    main()
