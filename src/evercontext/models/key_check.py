"""Ask a provider whether it accepts a key, by one request that costs nothing."""

from __future__ import annotations

from evercontext.errors import ModelAuthFailed
from evercontext.models import anthropic, openai
from evercontext.models.provider_errors import Provider
from evercontext.models.vendor_http import Refusal, VendorHttp

_SECONDS = 15.0


async def check_key(provider: str, key: str, base_url: str | None = None) -> None:
    """Raise ModelAuthFailed if the key is refused, ModelUnavailable if nobody can be asked."""
    vendor, path = (openai, "/models") if provider == "openai" else (anthropic, "/v1/models")
    address = base_url or vendor.ADDRESS
    about = Provider(provider, "", address=address)
    http = VendorHttp(about, vendor.headers_for(key), _SECONDS)
    try:
        await http.get(path)
    except Refusal as refusal:
        problem = http.refused(refusal)
        # Any other answer came after the key was looked at, or from a server that has no list.
        if isinstance(problem, ModelAuthFailed) or refusal.status >= 500:
            raise problem from refusal
    finally:
        await http.aclose()
