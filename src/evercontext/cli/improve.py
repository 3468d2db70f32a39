"""``evercontext improve``: a document, round by round, until it passes."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evercontext.cli.evaluate import LARGEST, read_document, read_rubric, show
from evercontext.cli.evaluation_history import bar
from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate, translate_composed
from evercontext.cli.options import Number, json_option, settings_of
from evercontext.cli.terminal import Screen, labelled, one_line
from evercontext.domain.outcome import Outcome
from evercontext.errors import ConfigError, EverContextError, UsageError
from evercontext.evaluation.document_versions import Versions
from evercontext.evaluation.target_file import FileState, TargetFile
from evercontext.evaluation.text_format import TextFormat, plain
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.evaluation.improve_loop import Improvement, Version
    from evercontext.evaluation.rubric import Evaluation, Rubric


@click.command("improve")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--max-iterations", type=click.IntRange(1, 50), help="Rounds. Default: 5.")
@click.option("--target", type=Number(0, 10), help="The passing score. Default: 8.0.")
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
    Without --in-place or --output the best version goes to FILE.improved. Permissions, line
    endings and byte order mark stay. A worse document than the one it found is never left: a reply
    that was cut off, or that would lose most sections, code or numbers, is not taken, and you are
    told what it would have lost.
    Every version is kept under the home folder, the original as 00; evercontext undo takes the
    written file back.
    """
    from evercontext.settings.directories import make_home

    if in_place and output:
        raise UsageError("--in-place and --output exclude each other")
    settings = settings_of(model_name=model, target_score=target, max_iterations=max_iterations)
    make_home(settings.home)
    job = ImprovementJob.of(settings, file, file if in_place else output or _beside(file))
    rubric = read_rubric(rubric_text)
    screen = Screen(sys.stderr if as_json else sys.stdout, no_color=settings.no_color)
    try:
        improvement = run_until_stopped(_improve(settings, job, rubric, judge, screen))
        if improvement.best.number:
            job.write(improvement.best.content)
    except EverContextError:
        if job.versions_folder.is_dir():
            place = one_line(str(job.versions_folder))
            print(translate("versions so far: {place}", place=place), file=sys.stderr)
        raise
    _report(screen, settings, job, improvement, as_json)
    return int(Outcome.DONE if improvement.best.evaluation.passed else Outcome.RED)


def _beside(file: Path) -> Path:
    return file.parent / f"{file.name}.improved"


@dataclass(frozen=True, slots=True)
class ImprovementJob:
    """One document on its way: as it was found, where it goes, where its versions are."""

    file: Path
    raw: str
    form: TextFormat
    place: TargetFile
    seen: FileState
    trace_id: str
    versions: Versions

    @classmethod
    def of(cls, settings: Settings, file: Path, target: Path) -> ImprovementJob:
        """Read the document, and make sure that the result can be written before any work."""
        from evercontext.agent.task import new_trace_id
        from evercontext.settings.build_file_policy import document_rules

        raw = read_document(file)
        policy = document_rules(settings, 4 * LARGEST)
        place = TargetFile.of(target, settings.root, policy, settings.home)
        seen = place.inspect()
        versions = Versions(settings.home)
        return cls(file, raw, TextFormat.of(raw), place, seen, new_trace_id(), versions)

    @property
    def versions_folder(self) -> Path:
        """Where every version is."""
        return self.versions.folder(self.trace_id)

    def keep(self, version: Version) -> None:
        """Keep a version; the original to the byte."""
        text = self.form.apply(version.content) if version.number else self.raw
        data = text.encode("utf-8", "replace")
        self.versions.keep(self.trace_id, version.number, self.file.name, data)

    def keep_refused(self, number: int, content: str) -> Path:
        """Keep a text that was not taken, for somebody who wants to look at it."""
        data = self.form.apply(content).encode("utf-8", "replace")
        return self.versions.keep(self.trace_id, number, f"not-taken-{self.file.name}", data)

    def write(self, content: str) -> None:
        """Put a version where the user wants it."""
        text = self.form.apply(content).encode("utf-8", "replace").decode("utf-8")
        self.place.write(self.seen, text, self.trace_id)


async def _improve(
    settings: Settings, job: ImprovementJob, rubric: Rubric, judge: str | None, screen: Screen
) -> Improvement:
    from evercontext.app.evaluation import open_evaluation
    from evercontext.app.models import open_model
    from evercontext.evaluation.improve_loop import improve
    from evercontext.evaluation.writer import ModelWriter

    async with AsyncExitStack() as stack:
        judging = await open_evaluation(settings, stack, "improve", judge)
        for notice in judging.notices:
            screen.line(labelled("warning", notice), "yellow")
        writer = await open_model(settings)
        stack.push_async_callback(writer.aclose)
        if writer.info.tiny:
            raise ConfigError(
                f"{writer.info.name} is too small to rewrite a document",
                fix="Name a model with --model, start Ollama or set OPENAI_API_KEY",
            )

        async def evaluate(text: str, number: int) -> Evaluation:
            return await judging.evaluator.evaluate(
                text,
                rubric,
                iteration=number,
                trace_id=job.trace_id,
                base=job.file.parent,
                document=str(job.file.resolve()),
            )

        def watch(version: Version) -> None:
            job.keep(version)
            score = version.evaluation.score
            turn = translate("round {number}", number=version.number)
            screen.line(f"{turn}  {bar(score)} {score:.1f}")

        original = plain(job.raw)
        rounds, revise = settings.max_iterations, ModelWriter(writer, original).revise
        return await improve(original, evaluate, revise, rounds=rounds, watch=watch)


def _report(
    screen: Screen, settings: Settings, job: ImprovementJob, improvement: Improvement, as_json: bool
) -> None:
    from evercontext.evaluation.content_loss import losses

    best, first, refused = improvement.best, improvement.versions[0], improvement.refused
    lost = [loss.text for loss in losses(first.content, best.content)] if best.number else []
    aside = job.keep_refused(len(improvement.versions), refused.content) if refused else None
    place = job.place.root / job.seen.path
    undo = _undo(settings, job) if best.number else None
    if as_json:
        rounds = [{"round": v.number, **v.evaluation.to_json()} for v in improvement.versions]
        content = {
            "trace_id": job.trace_id,
            "stop": improvement.stop,
            "best": best.number,
            "versions": str(job.versions_folder),
            "written": str(place) if best.number else None,
            "undo": undo,
            "lost": lost,
            "not_taken": None
            if refused is None
            else {"reasons": list(refused.reasons), "text": str(aside)},
            "rounds": rounds,
        }
        print(json.dumps(content, indent=2, ensure_ascii=False))
        return
    screen.line("")
    show(screen, str(place) if best.number else "the original", best.evaluation)
    # Of what was shown: 3.3 and then 7.2 are 3.9, whatever lies behind the first digit.
    gain = round(best.evaluation.score, 1) - round(first.evaluation.score, 1)
    summary = translate(
        "stopped: {reason}; {gain} since the beginning",
        reason=translate_composed(improvement.stop),
        gain=f"{gain:+.1f}",
    )
    screen.line(summary)
    for why in refused.reasons if refused else ():
        text = translate("not taken: {reason}", reason=translate_composed(one_line(why)))
        screen.line(screen.wrapped(text), "yellow")
    for text in lost:
        screen.line(screen.wrapped(labelled("warning", f"it lost {text}")), "yellow")
    before, after = len(first.content), len(best.content)
    if after < before / 2:
        cut = f"it was cut from {before} to {after} characters: see what is missing"
        screen.line(labelled("warning", cut), "yellow")
    folder = one_line(str(job.versions_folder))
    screen.line(translate("versions: {place} (00 is the original)", place=folder))
    if aside:
        text = translate("the text that was not taken: {place}", place=one_line(str(aside)))
        screen.line(text)
    if undo:
        screen.line(translate("take it back: {command}", command=one_line(undo)))


def _undo(settings: Settings, job: ImprovementJob) -> str:
    words = ["evercontext", "undo", job.trace_id[:8]]
    root = job.place.root
    if root != settings.root.resolve():
        words += ["--root", str(root)]
    if root in (Path.home(), *Path.home().parents):
        words.append("--allow-wide-root")
    return shlex.join(words)
