"""Ask the index so that the first question of a new tree is answered, too.

An index that is missing or far behind is brought up in the background. The question that finds it
so waits a little; then it is answered from what is known by now, and the files that are not yet
known are searched by their names and as plain text. The answer says how complete the index was.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import chain, zip_longest

from evercontext.index.folder import TOP_K
from evercontext.index.indexer import Progress
from evercontext.index.plain import plain_hits
from evercontext.index.search import Answer, CodeIndex

PATIENCE = 10.0
"""Seconds that a question waits for the index it began to build."""


async def ask(
    index: CodeIndex,
    query: str,
    top_k: int = TOP_K,
    path_prefix: str | None = None,
    *,
    explain: bool = False,
    patience: float = PATIENCE,
    progress: Progress | None = None,
) -> Answer:
    """Return the chunks that answer best; ``progress`` hears of an update in the background."""
    answer = await index.search(query, top_k, path_prefix, explain=explain)
    if not index.unknown:
        return answer
    update = index.catch_up(progress)
    if update is not None:
        if progress:
            progress(0, len(index.unknown))
        # Whoever asks while it is under way has waited once.
        await asyncio.wait({update}, timeout=patience)
        answer = await index.search(query, top_k, path_prefix, explain=explain)
    if not index.unknown:
        return answer
    known = {hit.path for hit in answer.hits}
    more = [
        hit
        for hit in await asyncio.to_thread(
            plain_hits, index.indexer.reader, list(index.unknown), query, top_k, path_prefix
        )
        if hit.path not in known
    ]
    # Neither kind of score means anything beside the other one: they take turns.
    mixed = chain.from_iterable(zip_longest(answer.hits, more))
    return replace(answer, hits=tuple(hit for hit in mixed if hit is not None)[:top_k])
