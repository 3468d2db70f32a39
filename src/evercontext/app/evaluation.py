"""Open the evaluator of documents: choose its judge from the settings."""

from __future__ import annotations

import shutil
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from evercontext.access.acting_user import acting_user
from evercontext.app.models import (
    canonical_name,
    choose_model,
    codex_judge_model,
    open_model,
)
from evercontext.errors import ModelProblem, StoreProblem, UsageError
from evercontext.evaluation import judge_prompt as templates
from evercontext.evaluation.document_versions import Versions
from evercontext.evaluation.evaluator import Evaluator
from evercontext.evaluation.judge_prompt import Template
from evercontext.evaluation.judges import Candidate, CodexJudge, Judge, ModelJudge
from evercontext.evaluation.local_judge import LocalJudge
from evercontext.evaluation.score_history import EvaluationHistory, Occasion
from evercontext.evaluation.tools import GetEvaluator
from evercontext.events.log import EventLog, open_log
from evercontext.events.redaction import redactor
from evercontext.settings import Settings, process_environment
from evercontext.storage.opener import open_store


@dataclass(frozen=True, slots=True)
class Chosen:
    """The judge, the reason for choosing it, and the judges to fall back to."""

    judge: Judge
    reason: str
    others: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenEvaluation:
    """An open evaluator, the versions it stores, and notices for the user."""

    evaluator: Evaluator
    versions: Versions
    notices: tuple[str, ...] = ()


async def open_evaluation(
    settings: Settings, stack: AsyncExitStack, door: str, judge_name: str | None = None
) -> OpenEvaluation:
    """Open judge, event log and history for one command; a broken store costs only the history."""
    chosen, warning = await open_judge(settings, stack, judge_name)
    events = open_log(settings)
    stack.callback(events.close)
    notices = [warning] if warning else []
    history: EvaluationHistory | None = None
    try:
        history = await open_history(settings, stack)
    except StoreProblem as problem:
        notices.append(f"evaluations are not kept: {problem}")
    evaluator = Evaluator(
        chosen.judge,
        reason=chosen.reason,
        others=chosen.others,
        target=settings.target_score,
        events=events,
        history=history,
        occasion=Occasion(door, project=str(settings.root.resolve())),
    )
    return OpenEvaluation(evaluator, Versions(settings.home), tuple(notices))


def lazy_evaluator(
    settings: Settings, stack: AsyncExitStack, events: EventLog, history: EvaluationHistory
) -> GetEvaluator:
    """Return a function that opens the evaluator when the first document is judged."""
    opened: list[Evaluator] = []

    async def get() -> Evaluator:
        if not opened:
            chosen, _ = await open_judge(settings, stack)
            occasion = Occasion("tool", project=str(settings.root.resolve()))
            target = settings.target_score
            evaluator = Evaluator(
                chosen.judge,
                target=target,
                events=events,
                history=history,
                occasion=occasion,
                reason=chosen.reason,
                others=chosen.others,
            )
            opened.append(evaluator)
        return opened[0]

    return get


async def open_history(settings: Settings, stack: AsyncExitStack) -> EvaluationHistory:
    """Open the store for its evaluations only."""
    store = await open_store(settings.database, settings.database_url, settings.login)
    stack.push_async_callback(store.close)
    who = await acting_user(store, settings)
    return EvaluationHistory(store, settings.home, redactor(settings).masked, who)


async def open_judge(
    settings: Settings, stack: AsyncExitStack, name: str | None = None
) -> tuple[Chosen, str | None]:
    """Return the judge, and a warning about the template if there is one.

    ``name`` is ``local``, ``codex`` or a model; unset, ``USE_MOCK_EVALUATOR`` decides, and unset
    too: codex if its version fits, else the configured model, else the local judge.
    """
    prompt_template, warning = templates.load(settings.evaluation_prompt_path)
    candidates = await _candidates(settings, prompt_template, stack, name)
    reasons: list[str] = []
    for number, candidate in enumerate(candidates):
        try:
            judge = await candidate.open()
        except ModelProblem as problem:
            if candidate is candidates[-1]:
                raise
            reasons.append(f"{candidate.name} was passed over: {problem.message}")
            continue
        reason = "; ".join([candidate.reason, *reasons])
        return Chosen(judge, reason, tuple(candidates[number + 1 :])), warning
    raise AssertionError("the last candidate opens or raises")


async def _candidates(
    settings: Settings, prompt_template: Template, stack: AsyncExitStack, name: str | None
) -> list[Candidate]:
    async def local() -> Judge:
        return LocalJudge()

    async def codex() -> Judge:
        return CodexJudge(codex_judge_model(settings), prompt_template)

    async def fitting_codex() -> Judge:
        model = codex_judge_model(settings)
        await model.facts()
        return CodexJudge(model, prompt_template)

    def of_model(model_name: str, reason: str) -> Candidate:
        async def judge() -> Judge:
            # The evaluator itself asks again, three times in all (L12): no retries of the model's.
            own = replace(settings, model_retries=0)
            model = await open_model(own, canonical_name(model_name))
            stack.push_async_callback(model.aclose)
            return ModelJudge(model, prompt_template)

        return Candidate(model_name, reason, judge)

    if name in ("gemini", ""):
        raise UsageError(f"there is no judge {name!r}", fix="Use local, codex or a model's name")
    named = name or _mock_setting(settings)
    reason = "named by --judge" if name else "set by USE_MOCK_EVALUATOR"
    if named == "local":
        return [Candidate("local", reason, local)]
    if named == "codex":
        return [Candidate("codex", reason, codex)]
    if named:
        return [of_model(named, reason)]
    choice = await choose_model(settings)
    # The embedded model is far too small to judge anything.
    if choice is None or choice.name.startswith("embedded:"):
        last = Candidate("local", "no other judge is set up", local)
    else:
        last = of_model(choice.name, choice.reason)
    if not shutil.which("codex", path=process_environment().get("PATH")):
        return [last]
    return [Candidate("codex", "codex is installed", fitting_codex), last]


def _mock_setting(settings: Settings) -> str | None:
    if settings.use_mock_evaluator is None:
        return None
    return "local" if settings.use_mock_evaluator else "codex"
