"""Fingerprint the benchmark's functions: copies of them must stay out of the training data.

    python -m training.fingerprints REPOSITORIES.json MIRRORS OUT

MIRRORS holds bare git directories named ``owner+name/repo``.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

from training.functions import LANGUAGES, pairs_of


def fingerprint(text: str) -> str:
    """Return what stays equal when only blanks change."""
    return hashlib.blake2b(re.sub(r"\s", "", text).encode(), digest_size=8).hexdigest()


def main() -> None:
    listed, mirrors, out = map(Path, sys.argv[1:4])
    found: set[str] = set()
    for repository in json.loads(listed.read_text()):
        folder = mirrors / repository["repository"].replace("/", "+") / "repo"
        tree = f"{repository['revision']}:{repository['root']}".rstrip(":")
        for revision in (tree, f"HEAD:{repository['root']}".rstrip(":")):
            archive = subprocess.run(
                ["git", "-C", str(folder), "archive", revision], capture_output=True
            )
            if archive.returncode == 0:
                break
        else:
            print("missing", repository["name"])
            continue
        before = len(found)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            for member in tar:
                opened = tar.extractfile(member) if member.isfile() else None
                if opened and member.name.rpartition(".")[2].lower() in LANGUAGES:
                    for pair in pairs_of(member.name, opened.read().decode("utf-8", "replace")):
                        found |= {fingerprint(pair.code), fingerprint("doc:" + pair.doc)}
        print(repository["name"], len(found) - before)
    out.write_text("\n".join(sorted(found)))


if __name__ == "__main__":
    main()
