"""Describe why a server cannot be reached: its host, and the proxy in between."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

_LOCAL = ("localhost", "127.", "::1")


def proxy_for(address: str, environment: Mapping[str, str]) -> tuple[str, str] | None:
    """Return (variable, proxy) that requests to ``address`` go through, or ``None``."""
    parts = urlsplit(address)
    if _is_exempt(parts.hostname or "", environment):
        return None
    for name in (f"{parts.scheme}_proxy", "all_proxy"):
        for variable in (name.upper(), name):
            if value := environment.get(variable):
                return variable, value
    return None


def _is_exempt(host: str, environment: Mapping[str, str]) -> bool:
    listed = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    names = [name.strip().lstrip("*").lstrip(".") for name in listed.split(",") if name.strip()]
    everything = "*" in [name.strip() for name in listed.split(",")]
    return everything or any(host == name or host.endswith(f".{name}") for name in names if name)


def unreachable(address: str, environment: Mapping[str, str]) -> str:
    """Return a message that names the unreachable host and the proxy that was tried."""
    parts = urlsplit(address)
    host = parts.hostname or address
    if host.startswith(_LOCAL):
        return f"{parts.netloc.rpartition('@')[2]} cannot be reached"
    way = proxy_for(address, environment)
    if way is None:
        variable = f"{parts.scheme or 'https'}_proxy".upper()
        return f"{host} cannot be reached (no proxy is set; {variable} would name one)"
    variable, proxy = way
    return f"{host} cannot be reached through the proxy {_bare(proxy)} that {variable} names"


def _bare(proxy: str) -> str:
    """A proxy without the login that its address may carry."""
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    return parts.netloc.rpartition("@")[2]
