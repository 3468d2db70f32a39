"""Download permissively licensed packages of the Python registry.

    python -m training.pypi DIRECTORY LIST...

A list holds one ``name`` or ``name==version`` a line. The licence is read from the registry's
metadata before anything is downloaded, and written beside each file.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import sys
import urllib.request
from pathlib import Path
from urllib.parse import urljoin

from training.exclusions import is_benchmark_package
from training.licences import python_licence

LARGEST = int(os.environ.get("LARGEST", "40000000"))


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return bytes(answer.read())


def best_file(files: list[dict[str, object]], largest: int) -> dict[str, object] | None:
    """Return the smallest pure wheel, or else the source archive, or else any wheel."""
    small = [f for f in files if int(str(f["size"])) <= largest]
    rank = {"py3-none-any.whl": 0, "any.whl": 1, ".tar.gz": 2, ".zip": 3, ".whl": 4}
    order = []
    for i, file in enumerate(small):
        place = next((r for end, r in rank.items() if str(file["filename"]).endswith(end)), 9)
        order.append((place, int(str(file["size"])), i))
    return small[min(order)[2]] if order and min(order)[0] < 9 else None


def release_files(
    about: dict[str, dict[str, list[dict[str, object]]]], version: str
) -> list[dict[str, object]]:
    """Return the files of one release; ``oldest`` is the first one that still has any."""
    releases = about["releases"]
    if version != "oldest":
        return releases.get(version) or []
    dated = [(str(files[0]["upload_time"]), name) for name, files in releases.items() if files]
    return releases[min(dated)[1]] if dated else []


def download(target: Path, wish: str, largest: int) -> None:
    """Bring one package if its licence permits."""
    name, _, version = wish.partition("==")
    goal = target / f"{wish}.json"
    if goal.exists() or is_benchmark_package(name):
        return
    try:
        about = json.loads(fetch(f"https://pypi.org/pypi/{name}/json"))
        info = about["info"]
        licence = python_licence(info)
        files = release_files(about, version) if version else about["urls"]
        chosen = best_file(files, largest) if licence else None
        if chosen is None:
            goal.write_text(json.dumps({"name": name, "licence": None}))
            return
        (target / str(chosen["filename"])).write_bytes(
            fetch(urljoin(f"https://pypi.org/simple/{name}/", str(chosen["url"])))
        )
    except (OSError, ValueError, KeyError) as error:
        print(f"{wish}: {error}", file=sys.stderr)
        return
    goal.write_text(
        json.dumps(
            {
                "name": name,
                "version": info["version"],
                "licence": licence,
                "file": chosen["filename"],
                "summary": info.get("summary"),
            }
        )
    )


def main() -> None:
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    wishes = [
        w.strip() for f in sys.argv[2:] for w in Path(f).read_text().splitlines() if w.strip()
    ]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda wish: download(target, wish, LARGEST), wishes))
    print(len(list(target.glob("*.json"))), "packages looked at")


if __name__ == "__main__":
    main()
