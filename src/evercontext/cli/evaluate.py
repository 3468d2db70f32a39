"""``evercontext evaluate``: what is a document worth, and what would make it better."""

from __future__ import annotations

import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.options import json_option, settings_of
from evercontext.cli.terminal import Screen, one_line
from evercontext.domain.outcome import Outcome
from evercontext.errors import UsageError
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.evaluation.rubric import Evaluation, Rubric

LARGEST = 1_048_576


@click.command("evaluate")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--rubric", "rubric_text", metavar="JSON|FILE", help="Criteria and their weights.")
@click.option("--target", type=click.FloatRange(0, 10), help="The passing score. Default: 8.0.")
@click.option(
    "--judge", metavar="NAME", help="local, codex or a model. Default: the best there is."
)
@click.option("--compare", is_flag=True, help="Two files: which one is better, and where.")
@json_option
def command(
    files: tuple[Path, ...],
    rubric_text: str | None,
    target: float | None,
    judge: str | None,
    compare: bool,
    as_json: bool,
) -> int:
    """Judge documents by a rubric. Exit 0 if all pass, 4 if one does not.

    \b
    evercontext evaluate README.md
    evercontext evaluate docs/*.md --target 7 --json
    evercontext evaluate --compare old.md new.md
    """
    if compare and len(files) != 2:
        raise UsageError("--compare takes two files")
    documents = {path: read_document(path) for path in files}
    rubric = read_rubric(rubric_text)
    settings = settings_of(target_score=target)
    screen = Screen(sys.stdout, no_color=settings.no_color)
    found = run_until_stopped(judge_all(settings, documents, rubric, judge))
    if as_json:
        shapes = [{"file": str(path), **e.to_json()} for path, e in found.items()]
        print(json.dumps(shapes[0] if len(shapes) == 1 else shapes, indent=2, ensure_ascii=False))
    else:
        for path, evaluation in found.items():
            show(screen, str(path), evaluation)
        if compare:
            _show_comparison(screen, found)
    passed = all(evaluation.passed for evaluation in found.values())
    return int(Outcome.DONE if passed or compare else Outcome.RED)


async def judge_all(
    settings: Settings, documents: dict[Path, str], rubric: Rubric, judge: str | None
) -> dict[Path, Evaluation]:
    """Judge each document, one after the other."""
    from evercontext.agent.task import new_trace_id
    from evercontext.app.house import redactor
    from evercontext.app.judging import open_judge
    from evercontext.evaluation.evaluator import Evaluator
    from evercontext.events.log import EventLog

    async with AsyncExitStack() as stack:
        chosen, warning = await open_judge(settings, stack, judge)
        if warning:
            print(f"warning: {one_line(warning)}", file=sys.stderr)
        events = EventLog(settings.traces, redactor(settings))
        stack.callback(events.close)
        evaluator = Evaluator(chosen, target=settings.target_score, events=events)
        found = {}
        for path, text in documents.items():
            trace_id = new_trace_id()
            found[path] = await evaluator.evaluate(
                text, rubric, trace_id=trace_id, base=path.parent
            )
        return found


def read_document(path: Path) -> str:
    """Read a document, or say in one line why not."""
    try:
        # A device or a pipe has no size, and may have no end.
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as problem:
        raise UsageError(f"{path} cannot be read: {problem.strerror}") from None
    if len(content) > LARGEST:
        raise UsageError(f"{path} is larger than {LARGEST} bytes", fix="Split it")
    try:
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text", fix="Save it as UTF-8") from None


def read_rubric(text: str | None) -> Rubric:
    """Weights as JSON, or a JSON file of them."""
    from evercontext.evaluation.rubric import Rubric

    if text is None:
        return Rubric.of()
    if not text.lstrip().startswith("{"):
        text = read_document(Path(text))
    try:
        given: Any = json.loads(text)
    except ValueError as problem:
        raise UsageError(f"--rubric is not valid JSON: {problem}") from None
    return Rubric.of(given)


def show(screen: Screen, name: str, evaluation: Evaluation) -> None:
    """A score people can read at a glance."""
    colour = "green" if evaluation.passed else "yellow"
    verdict = "passes" if evaluation.passed else "does not pass"
    screen.line(f"{name}  {evaluation.score:.1f} of 10, {verdict}", colour)
    for criterion, score in evaluation.rubric_scores.items():
        screen.line(f"  {criterion:<14}{bar(score)} {score:4.1f}")
    for suggestion in evaluation.suggestions:
        screen.line(screen.wrapped(f"  - {one_line(str(suggestion))}"))
    screen.line(f"  judged by {evaluation.metadata['model_used']}")


def bar(score: float, width: int = 20) -> str:
    """A small bar for a score from 0 to 10."""
    full = round(score / 10 * width)
    return "█" * full + "░" * (width - full)


def _show_comparison(screen: Screen, found: dict[Path, Evaluation]) -> None:
    (first, one), (second, two) = found.items()
    screen.line("")
    for criterion in one.rubric_scores:
        gain = two.rubric_scores[criterion] - one.rubric_scores[criterion]
        screen.line(f"  {criterion:<14}{gain:+5.1f}")
    gain = two.score - one.score
    better = "they are equal" if not gain else f"{second if gain > 0 else first} is better"
    screen.line(f"{better} ({gain:+.2f})")
