"""Scores as people see them: bars, lines of blocks, and what came before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from evercontext.cli.interrupt import run_until_stopped
from evercontext.cli.messages import translate
from evercontext.cli.terminal import Screen, clip, counted, local_time, one_line, pad
from evercontext.domain.outcome import Outcome
from evercontext.settings import Settings

if TYPE_CHECKING:
    from evercontext.evaluation.score_history import EvaluationHistory, EvaluationRecord

_BLOCKS = "▁▂▃▄▅▆▇█"
_MOST_SHOWN = 40
_MOST_IN_LINE = 24


def bar(score: float, width: int = 20) -> str:
    """A small bar for a score from 0 to 10."""
    full = round(score / 10 * width)
    return "█" * full + "░" * (width - full)


def spark(scores: Sequence[float]) -> str:
    """One block for each score, the newest last."""
    top = len(_BLOCKS) - 1
    return "".join(_BLOCKS[round(score / 10 * top)] for score in scores[-_MOST_IN_LINE:])


def show_history(
    settings: Settings, files: Sequence[Path], screen: Screen, as_json: bool
) -> Outcome:
    """Earlier evaluations: each of a document's, or one line for every document of the project."""
    groups = run_until_stopped(_read(settings, files))
    if as_json:
        content = [record.to_json() for group in groups for record in group]
        print(json.dumps(content, indent=2, ensure_ascii=False))
    elif files:
        for path, records in zip(files, groups, strict=True):
            _show_document(screen, path, records, settings)
    else:
        _show_project(screen, groups, settings.root)
    return Outcome.DONE


async def _read(settings: Settings, files: Sequence[Path]) -> list[list[EvaluationRecord]]:
    from evercontext.app.evaluation import open_history
    from evercontext.settings.directories import make_home

    make_home(settings.home)
    async with AsyncExitStack() as stack:
        history = await open_history(settings, stack)
        if files:
            return [await history.of_document(str(path.resolve())) for path in files]
        return await _of_project(history, str(settings.root.resolve()))


async def _of_project(history: EvaluationHistory, project: str) -> list[list[EvaluationRecord]]:
    """Records by document, each oldest first; the document judged last comes last."""
    groups: dict[str, list[EvaluationRecord]] = {}
    for record in reversed(await history.recent(project, limit=1000)):
        name = record.name
        groups[name] = [*groups.pop(name, []), record]
    return list(groups.values())


def _show_document(
    screen: Screen, path: Path, records: Sequence[EvaluationRecord], settings: Settings
) -> None:
    if not records:
        screen.line(translate("{document}  was never judged", document=one_line(str(path))))
        return
    screen.line(f"{one_line(str(path))}  {spark([r.score for r in records])}", "bold")
    for record in records[-_MOST_SHOWN:]:
        how = str(record.door)
        if record.round is not None:
            how = f"{how}, {translate('round {number}', number=record.round)}"
        text = f"{how}, {translate('judged by {judge}', judge=one_line(record.judge))}"
        screen.line(f"  {_moment(record)}  {bar(record.score)} {record.score:4.1f}  {text}")
    rounds = [r for r in records if r.round is not None]
    if rounds:
        folder = settings.home / "versions" / rounds[-1].trace_id
        text = translate("the versions of the last improve: {place}", place=one_line(str(folder)))
        screen.line(f"  {text}")


def _show_project(screen: Screen, groups: Sequence[Sequence[EvaluationRecord]], root: Path) -> None:
    if not groups:
        screen.line(translate("nothing was judged in {place} yet", place=one_line(str(root))))
        return
    blocks = _MOST_IN_LINE if screen.width >= 100 else _MOST_IN_LINE // 2
    width = max(16, screen.width - blocks - 40)
    for records in groups:
        last = records[-1]
        name = pad(clip(one_line(_near(last.name, root)), width), width)
        line = spark([r.score for r in records][-blocks:]).rjust(blocks)
        screen.line(
            f"{name}  {line} {last.score:4.1f}  {_moment(last)}  {counted(len(records), 'time')}"
        )


def _near(name: str, root: Path) -> str:
    path = Path(name)
    inside = path.is_absolute() and path.is_relative_to(root.resolve())
    return str(path.relative_to(root.resolve())) if inside else name


def _moment(record: EvaluationRecord) -> str:
    return local_time(record.at)
