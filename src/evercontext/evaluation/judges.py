"""Who judges: the codex program, any model, or the local judge."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from evercontext.domain.message import user
from evercontext.domain.model import Model, Request, complete
from evercontext.errors import JudgeInvalid, JudgeProblem, ProcessProblem, ProgramMissing
from evercontext.evaluation.rubric import Judgement, Rubric, read_judgement
from evercontext.evaluation.template import Template
from evercontext.process.limits import UNLIMITED
from evercontext.process.run import Completed, run
from evercontext.process.sandbox import Layer, Sandbox

READ_ONLY_PRESET = ("exec", "--sandbox", "read-only", "--skip-git-repo-check", "-")
_AUTH = re.compile(
    r"(?:http|status|code|error)\W{0,6}401\b|\bunauthori[sz]ed\b"
    r"|\bnot logged in\b|\blog ?in\b|\bapi[ _-]?key\b|\bauthentication\b",
    re.IGNORECASE,
)


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


class JudgeTired(JudgeProblem):
    """The judge failed in a way that another try may mend: a crash, a timeout."""

    code = "judge_failed"


class CodexJudge:
    """``codex`` as a judge: the prompt on stdin, in an empty folder, its whole tree killed late."""

    name = "codex"

    def __init__(
        self,
        template: Template,
        *,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        seconds: float,
        max_output: int,
        program: str = "codex",
    ) -> None:
        self._template, self._argv = template, (program, *arguments)
        self._environment, self._seconds, self._max = environment, seconds, max_output

    async def judge(
        self, content: str, rubric: Rubric, base: Path | None = None, tell: Tell = silent
    ) -> Judgement:
        """Run it once and read its JSON."""
        tell("CLI running")
        prompt = self._template.fill(content, rubric).encode("utf-8", "replace")
        with tempfile.TemporaryDirectory(prefix="evercontext-judge-") as empty:
            try:
                ended = await run(
                    self._argv,
                    cwd=Path(empty),
                    timeout=self._seconds,
                    env=self._environment,
                    stdin=prompt,
                    max_output=self._max,
                    # No cage, but a supervisor: nothing of its tree outlives it, or us.
                    sandbox=Sandbox(Path(empty), Layer.NONE, limits=UNLIMITED),
                )
            except ProgramMissing as missing:
                raise JudgeProblem(
                    "codex is not installed", fix="Install it, or set USE_MOCK_EVALUATOR=true"
                ) from missing
            except ProcessProblem as problem:
                raise JudgeTired(f"codex could not be run: {problem.message}") from problem
        # Some print what they were asked, with the example in it and all that a document claims.
        said = self._said(ended).replace(prompt.decode("utf-8").strip(), "")
        tell("parsing JSON")
        return read_judgement(said, rubric, self.name)

    def _said(self, ended: Completed) -> str:
        if ended.timed_out:
            raise JudgeTired(f"codex did not finish in {self._seconds:g} s")
        if ended.truncated:
            raise JudgeTired(f"codex printed more than {self._max} bytes")
        if ended.exit_code != 0:
            said = " ".join((ended.error_text or ended.text).split())[-300:]
            if _AUTH.search(said):
                raise JudgeProblem(f"codex refused: {said}", fix="Run: codex login")
            raise JudgeTired(f"codex ended with {ended.exit_code}: {said or 'no output'}")
        return ended.text


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
        asked = [user(self._template.fill(content, rubric))]
        hints = {"role": "judge"}
        request = Request(asked, temperature=0.0, seed=0, hints=hints)
        reply = await complete(self._model, request, lambda said: tell("retrying", said.text))
        tell("parsing JSON")
        return read_judgement(reply.text, rubric, self.name)


RETRYABLE = (JudgeInvalid, JudgeTired)
"""Failures that another try may mend; everything else fails at once."""
