"""How much a fresh base install takes, by package: ``python benchmarks/install_size.py [SOURCE…]``.

SOURCE is what pip takes: a checkout (this one by default), a wheel, or a requirement; with two of
them their sizes stand side by side. Each is installed into a virtual environment of its own, with
byte code as pip makes it. Needs a package registry. Bytes of files are counted, not blocks.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
SHOWN = 15


def install(source: str, place: Path) -> Path:
    """Install ``source`` and return its folder of packages."""
    if uv := shutil.which("uv"):
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, place], check=True)
        command = [
            uv,
            "pip",
            "install",
            "-q",
            "--compile-bytecode",
            "--python",
            place / "bin/python",
        ]
    else:
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        command = [place / "bin/python", "-m", "pip", "install", "-q"]
    subprocess.run([*command, source], check=True)
    return next((place / "lib").glob("python3*/site-packages"))


def sizes(packages: Path) -> Counter[str]:
    """Bytes by top-level name; libraries that a wheel carries beside it count with it."""
    found: Counter[str] = Counter()
    for path in packages.rglob("*"):
        name = path.relative_to(packages).parts[0]
        if path.is_file() and not path.is_symlink() and not name.startswith(("pip", "_virtualenv")):
            found[name.removesuffix(".libs").partition(".dist-info")[0]] += path.stat().st_size
    return found


def main() -> None:
    sources = sys.argv[1:] or [str(HERE)]
    measured = []
    for source in sources:
        with tempfile.TemporaryDirectory(prefix="install-size-") as scratch:
            measured.append(sizes(install(source, Path(scratch, "venv"))))
    names = {name for found in measured for name, _ in found.most_common(SHOWN)}
    order = sorted(names, key=lambda name: -max(found[name] for found in measured))
    for name in [*order, "others", "all"]:
        cells = []
        for found in measured:
            rest = sum(size for other, size in found.items() if other not in names)
            size = {"others": rest, "all": found.total()}.get(name, found[name])
            cells.append(f"{size / 1e6:8.1f}")
        print(f"{name:<32}{''.join(cells)} MB")


if __name__ == "__main__":
    main()
