"""``evercontext serve`` without the command line around it: what the tests talk to."""

from __future__ import annotations

import asyncio
import sys

from evercontext.app import EverContext
from evercontext.cli import failure
from evercontext.errors import EverContextError
from evercontext.server.serve import open_gateway, serve
from evercontext.settings import load


async def main() -> int:
    settings = load()
    async with (
        EverContext.open(settings) as app,
        open_gateway(settings, app.toolbox, app.events) as listener,
    ):
        return await serve([listener], lambda: print(listener.url, flush=True))


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except EverContextError as error:
        sys.exit(failure.report(error))
