"""Who judges a document: chosen from the settings, named in every answer."""

from __future__ import annotations

import shlex
import shutil
from contextlib import AsyncExitStack

from evercontext.app.models import canonical_name, choose_model, open_model
from evercontext.errors import UsageError
from evercontext.evaluation import template as templates
from evercontext.evaluation.judges import READ_ONLY_PRESET, CodexJudge, Judge, ModelJudge
from evercontext.evaluation.local_judge import LocalJudge
from evercontext.process.environment import filtered
from evercontext.settings import Settings, process_environment

_CODEX_VARIABLES = ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME", "HTTPS_PROXY", "NO_PROXY")


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
    model = await open_model(settings, canonical_name(chosen))
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
