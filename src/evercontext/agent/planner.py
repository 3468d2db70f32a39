"""Make a plan with a strong model; the same input gives the same plan."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from evercontext.agent import plan as plans
from evercontext.agent.plan import TaskPlan
from evercontext.agent.system_prompt import Surroundings, brief
from evercontext.context.conversation_window import Window, fit
from evercontext.domain.message import Message, assistant, user
from evercontext.domain.model import Hear, Model, Request, Usage, complete, unheard
from evercontext.domain.tool import Caller
from evercontext.errors import InvalidPlan, StoreGone
from evercontext.events.redaction import Clean, cleaned, unchanged
from evercontext.storage.key_value import get_value, put_value
from evercontext.storage.store import Store

_SHOWN_BACK = 4_000

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "version": {"const": plans.VERSION},
        "tasks": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "title": {"type": "string"},
                    "detail": {"type": "string"},
                    "kind": {"type": "string"},
                    "depends_on": {"type": "array", "items": {"type": "string"}},
                    "on_error": {"enum": list(plans.ON_ERROR)},
                    "files": {"type": "array", "items": {"type": "string"}},
                    "checks": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["id", "title"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["tasks"],
    "additionalProperties": False,
}


IMPLICIT = "implicit"
"""Where a plan comes from that is the task itself."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and how it came about."""

    plan: TaskPlan
    source: str
    """``implicit``, ``cache``, ``file``, ``edited``, ``resume`` or the planner's name."""
    usage: Usage = Usage()
    cost: float | None = None
    replies: int = 0
    """How often a model was asked for it."""
    finished: frozenset[str] = frozenset()
    """Tasks that were done before and are not done again."""
    interrupted: frozenset[str] = frozenset()
    """Tasks that were begun before and cut off."""
    red: frozenset[str] = frozenset()
    """Tasks that came to their end before, with checks that were red."""
    tree: str = ""
    """Hash of the tree that it was made for, where that is known."""


MakePlan = Callable[[str, str, Caller], Awaitable[Planned]]
"""Given the task, the last failure (or nothing) and for whom, returns a plan."""
Gather = Callable[[], Awaitable[Sequence[Message]]]
"""Fetches evidence for a planner: search results, memories."""


async def no_planner(text: str, failure: str, caller: Caller) -> Planned:
    """Without a planner the plan is the task itself, and no model is asked for it."""
    return Planned(plans.implicit(text), IMPLICIT)


async def nothing() -> Sequence[Message]:
    """For planners that see the tree alone."""
    return ()


@dataclass(frozen=True, slots=True)
class Planner:
    """A model that makes plans, and a cache of its plans."""

    model: Model
    store: Store | None = None
    clean: Clean = unchanged
    user: str | None = None
    """The owner of these plans: they may contain the user's own memories."""
    window: Window | None = None
    """The size that a request must fit into; without a window it is sent as it is."""

    async def plan(
        self,
        task: str,
        surroundings: Surroundings,
        *,
        executor: str,
        tree_digest: str,
        gather: Gather = nothing,
        hear: Hear = unheard,
    ) -> Planned:
        """Return a plan and its source: ``cache``, or the model's name."""
        key = self._key(task, executor, tree_digest)
        cached = await self._cached(key)
        if cached:
            return Planned(cached, "cache")
        planned = await self.make(task, surroundings, evidence=await gather(), hear=hear)
        await self._keep(key, planned.plan)
        return planned

    async def make(
        self,
        task: str,
        surroundings: Surroundings,
        failure: str = "",
        evidence: Sequence[Message] = (),
        hear: Hear = unheard,
    ) -> Planned:
        """Ask for a plan; an invalid one is sent back once with the reason."""
        request_text = f"{task}\n\nThe last plan failed here:\n{failure}" if failure else task
        messages = [brief(surroundings, "planner"), *evidence, user(request_text)]
        usage = Usage()
        for replies, last_try in ((1, False), (2, True)):
            sent = fit(messages, (), self.window) if self.window else messages
            request = Request(
                sent, temperature=0.0, seed=0, response_schema=SCHEMA, hints={"role": "planner"}
            )
            reply = await complete(self.model, request, hear)
            usage += reply.usage
            if self.window:
                self.window.learn(sent, (), reply.usage.input_tokens)
            try:
                return Planned(
                    plans.parse(reply.text), self.model.info.name, usage, replies=replies
                )
            except InvalidPlan as error:
                if last_try:
                    error.replies, error.input_tokens = replies, usage.input_tokens
                    error.output_tokens = usage.output_tokens
                    raise
                shown = assistant(reply.text[:_SHOWN_BACK] or "(empty)")
                messages += [shown, user(f"{error}. Answer again with the JSON object alone.")]
        raise AssertionError("unreachable")

    async def _keep(self, key: str, plan: TaskPlan) -> None:
        body = json.loads(json.dumps(plan.to_json()))
        # A plan that needs a secret would be another plan without it: it is made anew each time.
        if self.store is None or cleaned(body, self.clean) != body:
            return
        # A server that is away costs the cache, not the plan.
        with suppress(StoreGone):
            await put_value(self.store, key, json.dumps(body, ensure_ascii=False))

    async def _cached(self, key: str) -> TaskPlan | None:
        if self.store is None:
            return None
        try:
            text = await get_value(self.store, key)
            return plans.parse(text) if text is not None else None
        except (InvalidPlan, StoreGone):
            return None

    def _key(self, task: str, executor: str, tree_digest: str) -> str:
        parts = [task, tree_digest, plans.VERSION, self.model.info.name, executor]
        parts += [self.user] if self.user else []
        return "plan:" + hashlib.sha256(json.dumps(parts).encode()).hexdigest()
