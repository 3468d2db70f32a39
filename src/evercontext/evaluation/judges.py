"""Choose the judge: the codex program, any model, or the local judge."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from evercontext.domain.message import user
from evercontext.domain.model import Model, Request, complete
from evercontext.errors import JudgeInvalid, JudgeProblem, ModelProblem, ModelUnavailable
from evercontext.evaluation.judge_prompt import Template
from evercontext.evaluation.rubric import Judgement, Rubric, read_judgement


class Tell(Protocol):
    """Told the state that a judge enters (L19), and the reason where there is one."""

    def __call__(self, state: str, detail: str = "") -> None:
        """Take one state."""


def silent(state: str, detail: str = "") -> None:
    """Tell nobody."""


class Judge(Protocol):
    """Gives every criterion of a rubric a score, and says what to do better."""

    @property
    def name(self) -> str:
        """Who it is, for ``metadata.model_used``."""
        ...

    async def judge(
        self, content: str, rubric: Rubric, base: Path | None = None, tell: Tell = silent
    ) -> Judgement:
        """Judge a document; ``JudgeProblem`` if that failed."""
        ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A judge that could be asked, and why."""

    name: str
    reason: str
    open: Callable[[], Awaitable[Judge]]


class JudgeTired(JudgeProblem):
    """The judge failed in a way that another try may fix: a crash, a timeout."""

    code = "judge_failed"


class CodexJudge:
    """The ``codex`` program as a judge; ``model`` runs it once for each request."""

    name = "codex"

    def __init__(self, model: Model, template: Template) -> None:
        self._model, self._template = model, template

    async def judge(
        self, content: str, rubric: Rubric, base: Path | None = None, tell: Tell = silent
    ) -> Judgement:
        """Run it once and read its JSON."""
        tell("CLI running")
        question = self._template.fill(content, rubric)
        try:
            reply = await complete(self._model, Request([user(question)]))
        except ModelUnavailable as problem:
            raise JudgeTired(problem.message, fix=problem.fix) from problem
        except ModelProblem as problem:
            raise JudgeProblem(problem.message, fix=problem.fix) from problem
        tell("parsing JSON")
        # Some print what they were asked, with the example in it and all that a document claims.
        answer = reply.text.replace(question.strip(), "")
        return read_judgement(answer, rubric, self.name)


class ModelJudge:
    """Any model as a judge."""

    def __init__(self, model: Model, template: Template) -> None:
        self._model, self._template = model, template

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.info.name

    async def judge(
        self, content: str, rubric: Rubric, base: Path | None = None, tell: Tell = silent
    ) -> Judgement:
        """Ask once and read the JSON."""
        tell("judge running")
        messages = [user(self._template.fill(content, rubric))]
        hints = {"role": "judge"}
        request = Request(messages, temperature=0.0, seed=0, hints=hints)
        reply = await complete(self._model, request, lambda notice: tell("retrying", notice.text))
        tell("parsing JSON")
        return read_judgement(reply.text, rubric, self.name)


RETRYABLE = (JudgeInvalid, JudgeTired)
"""Failures that another try may fix; everything else fails at once."""
