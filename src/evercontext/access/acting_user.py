"""Say whom a process works for: a login's user where the database knows users, else ``EC_USER``."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from evercontext.access.users import KnowsUsers
from evercontext.errors import ConfigError, EverContextError
from evercontext.settings import Settings
from evercontext.storage.login import digest_of
from evercontext.storage.outbox_file import Outbox
from evercontext.storage.store import MayBeOffline, Store

_ASK = "Ask for a token (evercontext users add, users token) and set EC_LOGIN"


async def acting_user(store: Store, settings: Settings, *, serving: bool = False) -> str | None:
    """Return the user's name; raise where the database wants a login and there is none.

    ``serving``: a process without a login is fine, because every request brings its own.
    """
    box = Outbox(store.report.outbox) if store.report.outbox else None
    remembered = f"login:{digest_of(settings.login or '')}"
    if isinstance(store, MayBeOffline) and store.problem is not None:
        # Nobody can be asked: what is kept here meanwhile is of whoever it was last time.
        known = await asyncio.to_thread(box.copied, remembered) if box and settings.login else None
        return known or settings.user
    if not isinstance(store, KnowsUsers) or not store.needs_login:
        return settings.user
    if store.login is not None:
        if box:
            with suppress(EverContextError):
                await asyncio.to_thread(box.copy, remembered, store.login.user)
        return store.login.user
    if settings.login:
        raise ConfigError("EC_LOGIN is no login of this database, or it has ended", fix=_ASK)
    if serving:
        return None
    raise ConfigError("this database wants to know who you are", fix=_ASK)
