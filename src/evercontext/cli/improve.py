"""``evercontext improve``: a document, round by round, until it passes."""

from __future__ import annotations

import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evercontext.cli.evaluate import bar, read_document, read_rubric, show
from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.options import json_option, settings_of
from evercontext.cli.terminal import Screen, one_line
from evercontext.domain.outcome import Outcome
from evercontext.errors import ConfigError, UsageError
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.evaluation.improve import Improvement, Version
    from evercontext.evaluation.rubric import Evaluation, Rubric


@click.command("improve")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--max-iterations", type=click.IntRange(1, 50), help="Rounds. Default: 5.")
@click.option("--target", type=click.FloatRange(0, 10), help="The passing score. Default: 8.0.")
@click.option("--rubric", "rubric_text", metavar="JSON|FILE", help="Criteria and their weights.")
@click.option(
    "--judge", metavar="NAME", help="local, codex or a model. Default: the best there is."
)
@click.option("-m", "--model", metavar="NAME", help="The model that writes.")
@click.option("--in-place", is_flag=True, help="Replace FILE; the original is kept.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Where the result goes.")
@json_option
def command(
    file: Path,
    max_iterations: int | None,
    target: float | None,
    rubric_text: str | None,
    judge: str | None,
    model: str | None,
    in_place: bool,
    output: Path | None,
    as_json: bool,
) -> int:
    """Rewrite a document until it passes.

    FILE is evaluated, rewritten by the suggestions and evaluated again, until it passes or stops
    getting better.
    Without --in-place or --output the best version goes to FILE.improved. Every version is kept
    under the home folder. A worse document than the one it found is never left.
    """
    if in_place and output:
        raise UsageError("--in-place and --output exclude each other")
    content, rubric = read_document(file), read_rubric(rubric_text)
    settings = settings_of(model_name=model, target_score=target, max_iterations=max_iterations)
    place = file if in_place else output or file.with_name(f"{file.name}.improved")
    screen = Screen(sys.stderr if as_json else sys.stdout, no_color=settings.no_color)
    found, kept = run_until_stopped(_improve(settings, file, content, rubric, judge, screen))
    if found.best.number:
        _write(place, found.best.content)
    _report(screen, found, place, kept, as_json)
    return int(Outcome.DONE if found.best.evaluation.passed else Outcome.RED)


async def _improve(
    settings: Settings, file: Path, content: str, rubric: Rubric, judge: str | None, screen: Screen
) -> tuple[Improvement, Path]:
    from evercontext.agent.task import new_trace_id
    from evercontext.app.house import redactor
    from evercontext.app.judging import open_judge
    from evercontext.app.models import open_model
    from evercontext.evaluation.evaluator import Evaluator
    from evercontext.evaluation.improve import improve
    from evercontext.evaluation.writer import ModelWriter
    from evercontext.events.log import EventLog

    trace_id = new_trace_id()
    kept = settings.home / "versions" / trace_id
    async with AsyncExitStack() as stack:
        chosen, warning = await open_judge(settings, stack, judge)
        if warning:
            screen.line(f"warning: {one_line(warning)}", "yellow")
        events = EventLog(settings.traces, redactor(settings))
        stack.callback(events.close)
        writer = await open_model(settings)
        stack.push_async_callback(writer.aclose)
        if writer.info.tiny:
            raise ConfigError(
                f"{writer.info.name} is too small to rewrite a document",
                fix="Name a model with --model, start Ollama or set OPENAI_API_KEY",
            )
        evaluator = Evaluator(chosen, target=settings.target_score, events=events)

        async def evaluate(text: str, number: int) -> Evaluation:
            return await evaluator.evaluate(
                text, rubric, iteration=number, trace_id=trace_id, base=file.parent
            )

        def watch(version: Version) -> None:
            _write(kept / f"{version.number:02d}-{file.name}", version.content)
            score = version.evaluation.score
            screen.line(f"round {version.number}  {bar(score)} {score:.1f}")

        rounds = settings.max_iterations
        found = await improve(content, evaluate, ModelWriter(writer).revise, rounds=rounds,
                              watch=watch)  # fmt: skip
        return found, kept


def _write(path: Path, content: str) -> None:
    """Whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.tmp")
        fresh.write_text(content, encoding="utf-8", newline="")
        fresh.replace(path)
    except OSError as problem:
        raise ConfigError(f"{path} cannot be written: {problem.strerror}") from None


def _report(screen: Screen, found: Improvement, place: Path, kept: Path, as_json: bool) -> None:
    best, first = found.best, found.versions[0]
    if as_json:
        rounds = [{"round": v.number, **v.evaluation.to_json()} for v in found.versions]
        told = {"stop": found.stop, "best": best.number, "versions": str(kept), "rounds": rounds}
        written = str(place) if best.number else None
        print(json.dumps({**told, "written": written}, indent=2, ensure_ascii=False))
        return
    screen.line("")
    show(screen, str(place) if best.number else "the original", best.evaluation)
    gain = best.evaluation.score - first.evaluation.score
    screen.line(f"stopped: {found.stop}; {gain:+.1f} since the beginning")
    screen.line(f"versions {kept}")
