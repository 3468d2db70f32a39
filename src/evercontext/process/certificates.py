"""Load the certificates this machine trusts, once, off the event loop."""

from __future__ import annotations

import asyncio
import ssl

_read: dict[bool, ssl.SSLContext] = {}


async def certificates(*, trust_env: bool = True) -> ssl.SSLContext:
    """Return what a client checks servers by; reading it takes a tenth of a second."""
    if trust_env not in _read:
        _read[trust_env] = await asyncio.to_thread(_load, trust_env)
    return _read[trust_env]


def _load(trust_env: bool) -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context(trust_env=trust_env)
