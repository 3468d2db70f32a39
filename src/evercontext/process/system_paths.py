"""List the system paths a sandboxed command needs to see, and its own directories."""

from __future__ import annotations

import shlex
from functools import lru_cache
from pathlib import Path

READ_FIX = "Add its folder to sandbox_read: evercontext config set sandbox_read FOLDER[:FOLDER]"

_ETC = """
    alternatives bash.bashrc bash_completion.d ca-certificates ca-certificates.conf crypto-policies
    debian_version default/locale environment fonts gai.conf gitconfig gnutls group host.conf hosts
    inputrc java* ld.so.cache ld.so.conf ld.so.conf.d localtime
    locale.alias locale.conf locale.gen lsb-release machine-id magic mime.types nanorc networks
    nsswitch.conf os-release passwd perl pki profile profile.d protocols python3* redhat-release
    resolv.conf rpc services shells skel ssl/certs ssl/openssl.cnf static terminfo timezone vimrc
"""
_SYSTEM = """
    /usr /bin /sbin /lib /lib32 /lib64 /libx32 /opt /nix/store /gnu/store /snap
    /sys/devices/system/cpu /sys/devices/system/node
"""
_LIBRARIES = """
    /usr/lib /usr/lib32 /usr/lib64 /usr/libx32 /usr/local/lib /lib /lib32 /lib64 /libx32 /usr/share
    /nix/store /gnu/store /sys/devices/system/cpu /sys/devices/system/node
"""


@lru_cache(maxsize=1)
def libraries() -> tuple[Path, ...]:
    """Return what a program reads at start that starts no other: no shell, no compiler."""
    return (*(Path(name) for name in _LIBRARIES.split()), *_etc())


@lru_cache(maxsize=1)
def readable() -> tuple[Path, ...]:
    """Return programs and what they read at start.

    Not all of /etc: keys and password hashes live there.
    """
    return (*(Path(name) for name in _SYSTEM.split()), *_etc())


def _etc() -> tuple[Path, ...]:
    return tuple(path for name in _ETC.split() for path in Path("/etc").glob(name))


PROC = (Path("/proc"),)
"""Landlock has one /proc; what it says of processes outside the sandbox needs ptrace rights."""

DEVICES = tuple(
    Path("/dev", name) for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx")
)

_TOOLCHAINS = """
    .cargo/bin .cargo/registry .cargo/git .cargo/env .rustup .pyenv .nvm .fnm .volta .asdf .sdkman
    .local/bin .local/lib .local/share/uv/python .local/share/uv/tools .local/share/pnpm
    .local/share/mise .local/share/pipx .local/pipx .bun/bin .deno/bin go .m2/repository
    .nuget/packages .gradle/wrapper .rbenv .gem/ruby .gem/specs .opam .ghcup .elan .juliaup
    .dotnet/dotnet .dotnet/host .dotnet/packs .dotnet/sdk .dotnet/shared .dotnet/tools
    .npm/_cacache .cache/uv .cache/pypoetry/virtualenvs .virtualenvs .local/share/virtualenvs
    .local/share/pypoetry/venv .local/share/hatch/env .conda/envs
"""


def toolchains(home: Path) -> tuple[Path, ...]:
    """Return the parts of a home that hold compilers, interpreters and packages, not secrets.

    Some keep keys beside them (.gem/credentials, .nuget/NuGet, .dotnet/corefx): not those.
    """
    paths = (home / name for name in _TOOLCHAINS.split())
    return tuple(path for path in paths if path.exists())


def private_places(temporary: Path, home: Path | None) -> dict[str, str]:
    """Return the variables that point a command at places it may write.

    Caches go there too, so that checks work on a tree that is read-only and leave none behind.
    """
    inside = {
        "HOME": "home",
        "XDG_CACHE_HOME": "home/.cache",
        "XDG_CONFIG_HOME": "home/.config",
        "XDG_DATA_HOME": "home/.local/share",
        "RUFF_CACHE_DIR": "home/.cache/ruff",
        "MYPY_CACHE_DIR": "home/.cache/mypy",
        "GOCACHE": "home/.cache/go-build",
    }
    places = {name: str(temporary / place) for name, place in inside.items()}
    places["TMPDIR"] = str(temporary)
    places["PYTEST_ADDOPTS"] = f"-o cache_dir={shlex.quote(places['XDG_CACHE_HOME'])}/pytest"
    places["PYTHONDONTWRITEBYTECODE"] = "1"  # a cache elsewhere would hide the one that is there
    if home is not None:
        real = {
            "RUSTUP_HOME": ".rustup",
            "CARGO_HOME": ".cargo",
            "GOPATH": "go",
            "POETRY_VIRTUALENVS_PATH": ".cache/pypoetry/virtualenvs",
        }
        places |= {name: str(home / at) for name, at in real.items() if (home / at).is_dir()}
    return places
