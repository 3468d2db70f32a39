"""Store corrections of the token estimate per model, between runs."""

from __future__ import annotations

import json
from contextlib import suppress

from evercontext.context.conversation_window import Window
from evercontext.context.token_estimate import Calibration, TokenEstimator
from evercontext.domain.model import ModelInfo
from evercontext.errors import StoreGone, StoreProblem
from evercontext.storage.key_value import get_value, put_value
from evercontext.storage.store import Store

MOST_RESERVED = 8_192


class Calibrations:
    """Token estimators by model, from and to the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def window(self, info: ModelInfo) -> Window:
        """The window of a model, with the estimator that knows it best."""
        text = None
        # A server that is away costs a little accuracy, too.
        with suppress(StoreGone):
            text = await get_value(self._store, _key(info))
        calibration = Calibration.from_json(json.loads(text)) if text else None
        reserve = min(MOST_RESERVED, info.window // 4)
        return Window(info.window, reserve, TokenEstimator(info.bare_name, calibration))

    async def keep(self, info: ModelInfo, window: Window) -> None:
        """Store the calibration of this run; losing it costs a little accuracy, nothing else."""
        if window.estimator.exact or not window.estimator.calibration.seen:
            return
        value = json.dumps(window.estimator.calibration.to_json())
        try:
            await put_value(self._store, _key(info), value)
        except StoreProblem:
            return


def _key(info: ModelInfo) -> str:
    return f"tokens:{info.name}"
