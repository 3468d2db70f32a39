"""Send texts to embedding servers in bounded batches, with retries and checked answers.

Retries are made here, by the policy of all models: nobody else is there to ask again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evercontext.domain.backoff import Backoff, persist
from evercontext.errors import BadReply, ModelProblem
from evercontext.models.provider_errors import Provider
from evercontext.process.certificates import certificates

if TYPE_CHECKING:
    import httpx2

Sleep = Callable[[float], Awaitable[None]]
ATTEMPTS = 3
MOST_TEXTS = 96
MOST_CHARACTERS = 120_000
"""Of all texts in one request: far below what any server takes at once."""
LONGEST_TEXT = 8_000
"""Characters of one text that are sent."""
_LONGEST_WAIT = 30.0
_LARGEST_ANSWER = 64 * 1024 * 1024


class EmbeddingWire:
    """One server, asked by POST with JSON."""

    def __init__(
        self,
        provider: Provider,
        base: str,
        *,
        headers: Mapping[str, str] | None = None,
        seconds: float = 60.0,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._provider = provider
        self._base = base
        self._headers = dict(headers or {})
        self._seconds = seconds
        self._sleep = sleep
        self._client: httpx2.AsyncClient | None = None

    async def aclose(self) -> None:
        """Give the connections back."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def ask(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to one request; an outage is waited out, briefly."""
        backoff = Backoff(
            ATTEMPTS, first_wait=1.0, longest_asked=_LONGEST_WAIT, jitter=0.0, sleep=self._sleep
        )
        return await persist(lambda: self._once(path, body), backoff)

    async def _once(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        import httpx2

        try:
            answer = await (await self._connected()).post(path, json=body)
        except httpx2.TimeoutException as error:
            raise self._provider.unavailable(f"said nothing for {self._seconds:.0f} s") from error
        except httpx2.HTTPError as error:
            raise self._provider.unavailable("cannot be reached") from error
        fields = _object(answer)
        if answer.status_code >= 400:
            raise self._refused(answer.status_code, fields, answer.headers)
        if fields is None or len(answer.content) > _LARGEST_ANSWER:
            raise BadReply(f"{self._provider.name} sent something that is not its protocol")
        return fields

    def _refused(
        self, status: int, fields: Mapping[str, Any] | None, headers: Mapping[str, str]
    ) -> ModelProblem:
        error = (fields or {}).get("error", "")
        kind = str(error.get("code") or error.get("type") or "") if isinstance(error, dict) else ""
        message = str(error.get("message", "")) if isinstance(error, dict) else str(error)
        return self._provider.refused(status, message, kind=kind, headers=headers)

    async def _connected(self) -> httpx2.AsyncClient:
        trusted = await certificates()
        if self._client is None:
            import httpx2

            waits = httpx2.Timeout(self._seconds, connect=min(5.0, self._seconds))
            self._client = httpx2.AsyncClient(
                base_url=self._base,
                timeout=waits,
                headers=self._headers,
                verify=trusted,
            )
        return self._client


def _object(answer: httpx2.Response) -> dict[str, Any] | None:
    try:
        fields = answer.json()
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None


def portions(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts in requests of a bounded size; an empty text becomes a space."""
    part: list[str] = []
    size = 0
    for text in texts:
        # Servers refuse an empty text.
        text = text[:LONGEST_TEXT] or " "
        if part and (len(part) == MOST_TEXTS or size + len(text) > MOST_CHARACTERS):
            yield part
            part, size = [], 0
        part.append(text)
        size += len(text)
    if part:
        yield part


def checked(vectors: Any, count: int, provider: str) -> list[list[float]]:
    """Return vectors as they must be: one per text, of one length, of finite numbers."""
    if not isinstance(vectors, list) or len(vectors) != count:
        raise BadReply(f"{provider} did not answer with one vector per text")
    lengths = {len(row) if isinstance(row, list) else 0 for row in vectors}
    if len(lengths) != 1 or 0 in lengths:
        raise BadReply(f"{provider} answered with vectors of different lengths")
    for row in vectors:
        if not all(isinstance(x, int | float) and math.isfinite(x) for x in row):
            raise BadReply(f"{provider} answered with something that is no number")
    return vectors
