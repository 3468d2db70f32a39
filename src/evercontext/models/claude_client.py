"""Request one complete reply of Claude, with the vendor's client interface."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from evercontext.models.anthropic import ADDRESS, PATH, headers_for
from evercontext.models.provider_errors import Provider
from evercontext.models.vendor_http import VendorHttp


class ClaudeClient:
    """``client.messages.create(...)`` as in the vendor's SDK, without streaming."""

    def __init__(self, api_key: str, *, base_url: str | None, timeout: float) -> None:
        provider = Provider("anthropic", "", "ANTHROPIC_API_KEY", base_url or ADDRESS)
        self._http = VendorHttp(provider, headers_for(api_key), timeout)

    @property
    def messages(self) -> ClaudeClient:
        """The resource that ``create`` belongs to."""
        return self

    async def create(self, **body: Any) -> SimpleNamespace:
        """Send one request and return the reply: ``content``, ``usage``, ``stop_reason``.

        Raises Refusal with the vendor's own words, or ModelUnavailable.
        """
        sent = {name: value for name, value in body.items() if value not in (None, "")}
        reply = await self._http.post(PATH, sent)
        blocks = [block for block in reply.get("content") or () if isinstance(block, dict)]
        return SimpleNamespace(
            content=[SimpleNamespace(**block) for block in blocks],
            usage=SimpleNamespace(**(reply.get("usage") or {})),
            model=reply.get("model"),
            stop_reason=reply.get("stop_reason"),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()
