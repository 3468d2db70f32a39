"""Pairs from a translation repository: gettext files in a bare git directory.

python -m training.translations GIT_DIRECTORY PACKAGE LICENCE OUT
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

from training.catalogues import good_pair, portable_object


def main() -> None:
    folder, package, licence, out = sys.argv[1:5]
    archive = subprocess.run(
        ["git", "-C", folder, "archive", "HEAD"], capture_output=True, check=True
    )
    target = Path(out)
    target.mkdir(parents=True, exist_ok=True)
    count = 0
    with (
        tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar,
        (target / "japanese.jsonl").open("w") as lines,
    ):
        for member in tar:
            opened = tar.extractfile(member) if member.name.endswith(".po") else None
            if opened is None:
                continue
            for english, japanese in portable_object(opened.read().decode("utf-8", "replace")):
                pair = good_pair(english, japanese)
                if pair:
                    count += 1
                    line = {
                        "package": package,
                        "origin": "git",
                        "licence": licence,
                        "en": pair[0],
                        "ja": pair[1],
                    }
                    lines.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(count)


if __name__ == "__main__":
    main()
