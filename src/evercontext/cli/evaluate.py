"""``evercontext evaluate``: what is a document worth, and what would make it better."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evercontext.cli.evaluation_history import bar, show_history
from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.options import Number, json_option, settings_of
from evercontext.cli.terminal import Screen, clip, columns_of, labelled, one_line, pad
from evercontext.domain.japanese import has_kana
from evercontext.domain.outcome import Outcome
from evercontext.errors import InvalidArguments, UsageError
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.evaluation.rubric import Evaluation, Rubric

LARGEST = 1_048_576


Judged = list[tuple[Path, "Evaluation"]]


@click.command("evaluate")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--rubric", "rubric_text", metavar="JSON|FILE", help="Criteria and their weights.")
@click.option("--target", type=Number(0, 10), help="The passing score. Default: 8.0.")
@click.option(
    "--judge", metavar="NAME", help="local, codex or a model. Default: the best there is."
)
@click.option("--compare", is_flag=True, help="Two files: which one is better, and where.")
@click.option("--history", is_flag=True, help="Show earlier scores, of FILES or of the project.")
@json_option
def command(
    files: tuple[Path, ...],
    rubric_text: str | None,
    target: float | None,
    judge: str | None,
    compare: bool,
    history: bool,
    as_json: bool,
) -> int:
    """Judge documents by a rubric. Exit 0 if all pass, 4 if one does not.

    \b
    evercontext evaluate README.md
    evercontext evaluate docs/*.md --target 7 --json
    evercontext evaluate --compare old.md new.md
    evercontext evaluate --history README.md
    """
    _refuse_contradictions(files, compare, history)
    settings = settings_of(target_score=target)
    screen = Screen(sys.stdout, no_color=settings.no_color)
    if history:
        return int(show_history(settings, files, screen, as_json))
    documents = [(path, plain_text(path)) for path in files]
    rubric = read_rubric(rubric_text)
    judged = run_until_stopped(judge_all(settings, documents, rubric, judge))
    if as_json:
        print(json.dumps(_shape(judged, compare), indent=2, ensure_ascii=False))
    else:
        for path, evaluation in judged:
            show(screen, str(path), evaluation)
        if compare:
            _show_comparison(screen, judged)
    passed = all(evaluation.passed for _, evaluation in judged)
    return int(Outcome.DONE if passed or compare else Outcome.RED)


def _refuse_contradictions(files: tuple[Path, ...], compare: bool, history: bool) -> None:
    if compare and history:
        raise UsageError("--compare and --history exclude each other")
    if compare and len(files) != 2:
        raise UsageError("--compare takes two files")
    if not files and not history:
        raise UsageError("no document is named", fix="Say which: evercontext evaluate README.md")


async def judge_all(
    settings: Settings, documents: list[tuple[Path, str]], rubric: Rubric, judge: str | None
) -> Judged:
    """Judge each document, one after the other."""
    from evercontext.agent.task import new_trace_id
    from evercontext.app.evaluation import open_evaluation
    from evercontext.settings.directories import make_home

    make_home(settings.home)
    async with AsyncExitStack() as stack:
        judging = await open_evaluation(settings, stack, "evaluate", judge)
        for notice in judging.notices:
            print(labelled("warning", notice), file=sys.stderr)
        judged = []
        for path, text in documents:
            evaluation = await judging.evaluator.evaluate(
                text,
                rubric,
                trace_id=new_trace_id(),
                base=path.parent,
                document=str(path.resolve()),
            )
            judged.append((path, evaluation))
        return judged


def plain_text(path: Path) -> str:
    """Read a document as judges see it: without byte order mark, with ``\\n`` between lines."""
    from evercontext.evaluation.text_format import plain

    return plain(read_document(path))


def read_document(path: Path) -> str:
    """Read a document as it is, or say in one line why not."""
    try:
        # A device or a pipe has no size, and may have no end.
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as problem:
        raise UsageError(f"{path} cannot be read: {problem.strerror}") from None
    if len(content) > LARGEST:
        raise UsageError(f"{path} is larger than {LARGEST} bytes", fix="Split it")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text", fix=_conversion(path, content)) from None
    if "\0" in text:
        raise UsageError(f"{path} is not text: it holds NUL bytes")
    return text


def _conversion(path: Path, content: bytes) -> str:
    """How to save it as UTF-8, where it can be told what it is."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return f"Convert it: iconv -f UTF-16 -t UTF-8 {shlex.quote(str(path))}"
    for name, known_as in (("iso2022_jp", "ISO-2022-JP"), ("euc_jp", "EUC-JP"), ("cp932", "CP932")):
        try:
            text = content.decode(name)
        except UnicodeDecodeError:
            continue
        if has_kana(text):
            return f"Convert it: iconv -f {known_as} -t UTF-8 {shlex.quote(str(path))}"
    return "Save it as UTF-8"


def read_rubric(text: str | None) -> Rubric:
    """Weights as JSON, or a JSON file of them."""
    from evercontext.evaluation.rubric import Rubric

    if text is None:
        return Rubric.of()
    if not text.strip():
        raise UsageError("--rubric is empty", fix='Give {"clarity": 1} or a file of that')
    if not text.lstrip().startswith(("{", "[")):
        text = plain_text(Path(text))
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise UsageError(f"--rubric is not valid JSON: {problem}") from None
    try:
        return Rubric.of(content)
    except InvalidArguments as problem:
        raise UsageError(f"--rubric: {problem.message.removeprefix('rubric: ')}") from None


def show(screen: Screen, name: str, evaluation: Evaluation) -> None:
    """A score people can read at a glance."""
    colour = "green" if evaluation.passed else "yellow"
    verdict = "{score} of 10, passes" if evaluation.passed else "{score} of 10, does not pass"
    ended = translate(verdict, score=f"{evaluation.score:.1f}")
    screen.line(f"{one_line(name)}  {ended}", colour)
    width = _widest(evaluation)
    open_ = _not_judged(evaluation)
    for criterion, score in evaluation.rubric_scores.items():
        result = f"{bar(score)} {score:4.1f}"
        result = translate("not judged") if criterion in open_ else result
        screen.line(f"  {pad(clip(one_line(criterion), width), width)}  {result}")
    if note := evaluation.metadata.get("note"):
        screen.line(screen.wrapped(f"  {translate_composed(one_line(str(note)))}"), "dim")
    for suggestion in evaluation.suggestions:
        screen.line(screen.wrapped(f"  - {one_line(str(suggestion))}"))
    judge = one_line(str(evaluation.metadata["model_used"]))
    reason = one_line(str(evaluation.metadata.get("judge_reason", "")))
    by = translate("judged by {judge}", judge=judge)
    why = f" ({translate_composed(reason)})" if reason else ""
    screen.line(screen.wrapped(f"  {by}{why}"))


def _not_judged(*evaluations: Evaluation) -> set[str]:
    """Criteria that one of the judges said nothing about."""
    return {
        name for evaluation in evaluations for name in evaluation.metadata.get("not_judged", ())
    }


def _widest(evaluation: Evaluation) -> int:
    """Room for the names of criteria; a long one is cut, so that the bars stay on their lines."""
    return min(40, max(12, *(columns_of(one_line(name)) for name in evaluation.rubric_scores)))


def _shape(judged: Judged, compare: bool) -> Any:
    shapes = [{"file": str(path), **evaluation.to_json()} for path, evaluation in judged]
    if compare:
        (_, first), (_, second) = judged
        gains = {name: round(gain, 2) for name, gain in _gains(first, second).items()}
        return {
            "documents": shapes,
            "gains": gains,
            "gain": round(second.score - first.score, 2),
            "better": str(_better(judged)) if _better(judged) else None,
        }
    return shapes[0] if len(shapes) == 1 else shapes


def _gains(first: Evaluation, second: Evaluation) -> dict[str, float]:
    return {
        name: second.rubric_scores[name] - first.rubric_scores[name] for name in first.rubric_scores
    }


def _better(judged: Judged) -> Path | None:
    (path, first), (other_path, second) = judged
    if first.score == second.score:
        return None
    return other_path if second.score > first.score else path


def _show_comparison(screen: Screen, judged: Judged) -> None:
    (_, first), (_, second) = judged
    screen.line("")
    width = _widest(first)
    open_ = _not_judged(first, second)
    for criterion, gain in _gains(first, second).items():
        result = translate("not judged") if criterion in open_ else f"{gain:+5.1f}"
        screen.line(f"  {pad(clip(one_line(criterion), width), width)}  {result}")
    better = _better(judged)
    verdict = translate("they are equal")
    if better:
        verdict = translate("{document} is better", document=one_line(str(better)))
    screen.line(f"{verdict} ({second.score - first.score:+.2f})")
