"""Find the user's programs and environments that a command must be able to read.

An environment that is active (``VIRTUAL_ENV``, ``CONDA_PREFIX``), the folders of ``PATH``, the
Pythons that lie there and those that virtual environments are made from. Only the parts that hold
programs and packages are shown: what else lies beside them stays out of sight.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from evercontext.files.small_files import small_text

OWN = (".venv", "venv")
"""Where a project keeps an environment of its own."""
ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
_PROGRAMS = ("bin", "lib", "lib64", "libexec", "include")
_PARTS = (*_PROGRAMS, "share", "etc", "ssl", "src", "pyvenv.cfg", "conda-meta")
_PYTHONS = ("python3", "python")
_MOST_LINKS = 40


def environment_of(root: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which every command of a project runs: one Python for all.

    The project's own environment comes first, then the active one, then ``PATH`` as it is.
    """
    active = (Path(environment[name]) for name in ACTIVE if environment.get(name))
    for place in (*(root / name for name in OWN), *active):
        if _python(place / "bin") is not None:
            path = os.pathsep.join(filter(None, (str(place / "bin"), environment.get("PATH"))))
            name = "CONDA_PREFIX" if (place / "conda-meta").is_dir() else "VIRTUAL_ENV"
            return {**environment, "PATH": path, name: str(place)}
    return dict(environment)


def readable(root: Path, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return what a command with this environment needs to see outside its root."""
    active = (Path(environment[name]) for name in ACTIVE if environment.get(name))
    prefixes = [*active, *(root / name for name in OWN)]
    places = [place for prefix in prefixes for place in _prefix(prefix)]
    wide = (Path(environment.get("HOME") or "/"), root)
    for folder in _folders(environment, "PATH", wide):
        places += [folder, *_prefix(folder.parent), *_shims(folder), *_linked(folder)]
    places += _folders(environment, "PYTHONPATH", wide)
    return _outermost(places)


def _outermost(places: Iterable[Path]) -> tuple[Path, ...]:
    """Leave out what lies in another place: nothing can be mounted where something is already."""
    outermost: dict[Path, None] = {}
    for place in sorted(set(places), key=lambda place: len(place.parts)):
        if outermost.keys().isdisjoint(place.parents):
            outermost[place] = None
    return tuple(outermost)


def _folders(environment: Mapping[str, str], name: str, wide: tuple[Path, ...]) -> Iterator[Path]:
    """Yield the folders of a search path; one with a whole home or project in it is too much."""
    for folder in map(Path, environment.get(name, "").split(os.pathsep)):
        if folder.is_absolute() and not any(place.is_relative_to(folder) for place in wide):
            yield folder


def _prefix(prefix: Path) -> Iterator[Path]:
    """Yield the parts of an environment, and of the Python that it was made from."""
    if (prefix / "pyvenv.cfg").is_file():
        yield from _parts(prefix, _PARTS)
        yield from _linked(prefix / "bin")
        yield from _linked(_home(prefix))
    elif (prefix / "conda-meta").is_dir():
        yield from _parts(prefix, _PARTS)


def _home(prefix: Path) -> Path:
    """Return where a virtual environment says that its Python is: it may hold a copy."""
    lines = (small_text(prefix, "pyvenv.cfg") or "").splitlines()
    pairs = (line.partition("=") for line in lines)
    return Path(next((value.strip() for key, _, value in pairs if key.strip() == "home"), "/"))


def _parts(prefix: Path, names: tuple[str, ...]) -> Iterator[Path]:
    """Yield them under the name the prefix has, and where they really are."""
    for place in dict.fromkeys((prefix, prefix.resolve())):
        if place != Path("/"):
            yield from (place / name for name in names if (place / name).exists())


def _shims(folder: Path) -> Iterator[Path]:
    """Yield what the small scripts of pyenv and its kin start."""
    if folder.name == "shims" and (folder.parent / "versions").is_dir():
        yield folder.parent


def _linked(folder: Path) -> Iterator[Path]:
    """Yield the installation that the Python in a folder leads to, with the links on the way.

    A project may have made the first link: nothing is shown unless a Python lies at the end.
    """
    first = _python(folder)
    if first is None:
        return
    hops = list(_hops(first))
    if not all(hop.name.startswith("python") for hop in hops):
        return
    if parts := list(_installation(hops[-1].resolve().parent.parent)):
        yield from parts
        yield from hops
        for hop in hops:
            yield from _installation(hop.parent.parent)


def _installation(prefix: Path) -> Iterator[Path]:
    if next(prefix.glob("lib*/python3*/os.py"), None) is not None:
        yield from _parts(prefix, _PROGRAMS)


def _hops(path: Path) -> Iterator[Path]:
    """Yield a link, what it leads to, and so on to the end; a path is not made shorter."""
    for _ in range(_MOST_LINKS):
        yield path
        if not path.is_symlink():
            return
        path = Path(os.path.normpath(path.parent / path.readlink()))


def _python(folder: Path) -> Path | None:
    return next((folder / name for name in _PYTHONS if (folder / name).is_file()), None)
