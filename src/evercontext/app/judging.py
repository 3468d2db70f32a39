"""Who judges a document: chosen from the settings, named in every answer."""

from __future__ import annotations

import shlex
import shutil
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from evercontext.app.models import canonical_name, choose_model, open_model
from evercontext.app.redaction import redactor
from evercontext.errors import StoreProblem, UsageError
from evercontext.evaluation import template as templates
from evercontext.evaluation.evaluator import Evaluator
from evercontext.evaluation.history import EvaluationHistory, Occasion
from evercontext.evaluation.judges import READ_ONLY_PRESET, CodexJudge, Judge, ModelJudge
from evercontext.evaluation.local_judge import LocalJudge
from evercontext.evaluation.versions import Versions
from evercontext.events.log import EventLog
from evercontext.process.environment import filtered
from evercontext.settings import Settings, process_environment
from evercontext.storage.choose import open_store

_CODEX_VARIABLES = ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True, slots=True)
class Judging:
    """An evaluator that remembers, where what it says is kept, and what a person should be told."""

    evaluator: Evaluator
    versions: Versions
    notices: tuple[str, ...] = ()


async def open_judging(
    settings: Settings, stack: AsyncExitStack, door: str, judge_name: str | None = None
) -> Judging:
    """Open judge, event log and history for one command; a broken store only costs the history."""
    judge, warning = await open_judge(settings, stack, judge_name)
    events = EventLog(settings.traces, redactor(settings))
    stack.callback(events.close)
    notices = [warning] if warning else []
    history: EvaluationHistory | None = None
    try:
        history = await open_history(settings, stack)
    except StoreProblem as problem:
        notices.append(f"evaluations are not kept: {problem}")
    evaluator = Evaluator(
        judge,
        target=settings.target_score,
        events=events,
        history=history,
        occasion=Occasion(door, project=str(settings.root.resolve())),
    )
    return Judging(evaluator, Versions(settings.home), tuple(notices))


async def open_history(settings: Settings, stack: AsyncExitStack) -> EvaluationHistory:
    """Open the store for its evaluations alone."""
    store = await open_store(settings.database, settings.database_url)
    stack.push_async_callback(store.close)
    return EvaluationHistory(store, settings.home, redactor(settings).masked, settings.user)


async def open_judge(
    settings: Settings, stack: AsyncExitStack, name: str | None = None
) -> tuple[Judge, str | None]:
    """Return the judge, and a warning about the template if there is one.

    ``name`` is ``local``, ``codex`` or a model; unset, ``USE_MOCK_EVALUATOR`` decides, and unset
    too: codex if it is installed, else the configured model, else the local judge.
    """
    template, warning = templates.load(settings.evaluation_prompt_path)
    chosen = name or await _choose(settings)
    if chosen == "local":
        return LocalJudge(), warning
    if chosen == "codex":
        return _codex(settings, template), warning
    if chosen in ("gemini", ""):
        raise UsageError(f"there is no judge {chosen!r}", fix="Use local, codex or a model's name")
    # The evaluator itself asks again, three times in all (L12): the model's own retries stay out.
    model = await open_model(replace(settings, model_retries=0), canonical_name(chosen))
    stack.push_async_callback(model.aclose)
    return ModelJudge(model, template), warning


async def _choose(settings: Settings) -> str:
    if settings.use_mock_evaluator is not None:
        return "local" if settings.use_mock_evaluator else "codex"
    if shutil.which("codex", path=process_environment().get("PATH")):
        return "codex"
    model = await choose_model(settings)
    # The model inside the package is far too small to judge anything.
    return "local" if model.name.startswith("embedded:") else model.name


def _codex(settings: Settings, template: templates.Template) -> CodexJudge:
    preset = settings.codex_args.strip() == "read-only"
    return CodexJudge(
        template,
        arguments=READ_ONLY_PRESET if preset else shlex.split(settings.codex_args),
        environment=filtered(process_environment(), extra=_CODEX_VARIABLES),
        seconds=settings.codex_timeout / 1000,
        max_output=settings.codex_max_buffer,
    )
