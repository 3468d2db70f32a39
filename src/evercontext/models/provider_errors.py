"""Map responses of providers to our errors."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from evercontext.errors import (
    ContextTooLong,
    ModelAuthFailed,
    ModelProblem,
    ModelRefused,
    ModelUnavailable,
    ModelUnknown,
    RateLimited,
)

_TOO_LONG = re.compile(
    r"context[_ ](length|window|size)|too long|too many tokens|maximum context|input length",
    re.IGNORECASE,
)
_BY_KIND = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
}


@dataclass(frozen=True, slots=True)
class Provider:
    """Who answered, for messages that name the fix."""

    name: str
    model: str
    key_setting: str | None = None
    address: str = ""

    def unavailable(self, what: str) -> ModelUnavailable:
        """Return the error for an answer that never came whole."""
        return ModelUnavailable(
            f"{self.name} {what}", fix=f"Check that {self.address or 'it'} can be reached"
        )

    def no_key(self) -> ModelAuthFailed:
        """Return the error for a key that is not there."""
        fix = f"Set {self.key_setting}, or run: evercontext setup"
        return ModelAuthFailed(f"no key for {self.name}", fix=fix)

    def refused(
        self,
        status: int,
        message: str,
        *,
        kind: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> ModelProblem:
        """Return the error for an HTTP status; ``kind`` decides where the status says nothing."""
        status = _BY_KIND.get(kind, 500) if status < 400 else status
        reason = " ".join(message.split())[:300]
        if status in (401, 403):
            # The provider's own words may hold part of the key.
            fix = f"Check {self.key_setting}" if self.key_setting else None
            return ModelAuthFailed(f"{self.name} refused the key ({status})", fix=fix)
        if status == 404:
            return ModelUnknown(
                f"{self.name} has no model {self.model!r}: {reason}",
                fix="`evercontext model list` shows what is there",
            )
        if status == 429:
            wait = retry_after(headers or {})
            advice = f", asks to wait {wait:.0f} s" if wait else ""
            return RateLimited(f"{self.name} limits the rate{advice}: {reason}", retry_after=wait)
        if status == 413 or (status < 500 and (_TOO_LONG.search(kind) or _TOO_LONG.search(reason))):
            return ContextTooLong(f"more than {self.name}:{self.model} can take: {reason}")
        if status < 500 and status not in (408, 409):
            return ModelRefused(f"{self.name} rejected the request ({status}): {reason}")
        wait = retry_after(headers or {})
        return ModelUnavailable(
            f"{self.name} failed ({kind or status}): {reason}", retry_after=wait
        )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a provider asks to wait, from either form of the header."""
    with contextlib.suppress(KeyError, ValueError):
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    value = headers.get("retry-after", "")
    with contextlib.suppress(ValueError):
        return max(0.0, float(value))
    with contextlib.suppress(ValueError, TypeError):
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return None
