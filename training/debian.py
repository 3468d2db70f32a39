"""Download the Debian packages whose content is source code, a message catalogue or a lexicon.

    python -m training.debian DIRECTORY

Reads apt's own package lists; takes what the lists name, nothing else. Language packages of
Debian carry their sources and a copyright file per package, which `training.licences` judges.
"""

from __future__ import annotations

import concurrent.futures
import gzip
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

MIRROR = "http://deb.debian.org/debian/"
LARGEST = 1_500_000
SOURCES = re.compile(
    r"(python3-(?!.*-dbg).*|golang-.*-dev|librust-.*-dev|ruby-.*|node-.*|php-.*|lua-.*)$"
)
LARGE_BUT_WANTED = {
    "python3-numpy",
    "python3-scipy",
    "python3-pandas",
    "python3-sklearn",
    "python3-sympy",
    "python3-django",
    "python3-networkx",
    "python3-astropy",
    "python3-skimage",
    "python3-nova",
    "python3-botocore",
    "python3-twisted",
    "python3-sqlalchemy",
    "python3-dask",
    "python3-matplotlib",
    "python3-statsmodels",
    "python3-xarray",
    "python3-distributed",
    "golang-golang-x-tools-dev",
    "golang-k8s-api-dev",
    "golang-golang-x-net-dev",
    "golang-github-kubernetes-apimachinery-dev",
    "golang-1.19-src",
    "golang-google-cloud-dev",
    "wordnet-base",
    "unicode-cldr-core",
    "unicode-data",
}


def package_lists() -> str:
    """Return every package paragraph apt knows of the main archive."""
    names = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(FILENAME)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    wanted = [n for n in names if n.endswith("Packages.lz4") and "_debian_" in n]
    return "\n\n".join(
        subprocess.run(
            ["/usr/lib/apt/apt-helper", "cat-file", name],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for name in wanted
    )


def with_japanese_catalogue() -> set[str]:
    """Return the packages that install a Japanese message catalogue."""
    found: set[str] = set()
    for part in ("all", "amd64"):
        url = f"{MIRROR}dists/bookworm/main/Contents-{part}.gz"
        with urllib.request.urlopen(url, timeout=120) as answer:
            for line in gzip.decompress(answer.read()).decode("utf-8", "replace").splitlines():
                if "locale/ja/LC_MESSAGES/" in line:
                    found |= {owner.rpartition("/")[2] for owner in line.split()[-1].split(",")}
    return found


def choose() -> list[tuple[str, str]]:
    """Return (package, path in the archive) of everything to download."""
    japanese = with_japanese_catalogue()
    chosen: dict[str, str] = {}
    for paragraph in package_lists().split("\n\n"):
        fields = dict(re.findall(r"^(Package|Filename|Size): (.*)$", paragraph, re.M))
        name = fields.get("Package", "")
        if "Filename" not in fields:
            continue
        small = int(fields["Size"]) <= LARGEST
        if name in LARGE_BUT_WANTED or (small and (SOURCES.match(name) or name in japanese)):
            chosen[name] = fields["Filename"]
    return sorted(chosen.items())


def download(target: Path, name: str, path: str) -> None:
    """Bring one package, unless it is there."""
    goal = target / f"{name}.deb"
    if goal.exists():
        return
    try:
        with urllib.request.urlopen(MIRROR + path, timeout=60) as answer:
            content = answer.read()
    except OSError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return
    goal.write_bytes(content)


def main() -> None:
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    chosen = choose()
    print(len(chosen), "packages")
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda item: download(target, *item), chosen))


if __name__ == "__main__":
    main()
