"""Break small projects in seeded ways, mend them, and print the checks before and after.

    python -m benchmarks.repair [--seed N] [--seen] [--held-out] [--installed] [--model]

Without a choice every set is run: the samples the fixers were built with, samples nobody looked at
while they were, modules of Python's standard library, and the kinds that need a model, with a
scripted one. Exits 1 if a kind that fixers know was not mended within two moves, if anything ended
up worse, or if the road through the model did not end green.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import shutil
import sys
import tempfile
from pathlib import Path

# Also when run as a file: the attackers, probes and samples are those of the tests.
sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.agent.repair.held_out import HELD_OUT, INSTALLED
from tests.agent.repair.mutations import BY_FIXERS, BY_MODEL, PYTHON, Mutation
from tests.agent.repair.samples import SEEN, Sample
from tests.agent.repair.trial import Trial, broken, contents, lay_out, try_out

from evercontext import testing
from evercontext.agent.project_repair import repair_project
from evercontext.domain.event import Event, RepairAttempt

MOVES = 2
_PROGRAM = {"python": "python3", "javascript": "node", "rust": "cargo"}


def pairs(
    samples: tuple[Sample, ...], mutations: tuple[Mutation, ...]
) -> list[tuple[Sample, Mutation]]:
    """Every mutation with every sample of its language."""
    return [(s, m) for m in mutations for s in samples if s.language == m.language]


async def is_sound(sample: Sample, folder: Path) -> bool:
    """True if a sample is green before anything is broken; said if it is not."""
    place = folder / "sound" / re.sub(r"\W+", "-", sample.name)
    lay_out(place / "project", dict(sample.files))
    async with testing.house(place, lint_cmd="true", **sample.settings) as app:
        found = (await repair_project(app, trace_id="sound", dry=True)).before
    if found.verdict != "verified":
        print(f"{sample.name} is not sound: {found.failures[:1]}")
    return found.verdict == "verified"


async def by_fixers(
    title: str,
    samples: tuple[Sample, ...],
    mutations: tuple[Mutation, ...],
    seed: int,
    folder: Path,
) -> bool:
    """Print a table of what the fixers alone did; True if all was as it must be."""
    print(f"\n{title}, seed {seed}: fixers alone")
    trials: list[Trial] = []
    for sample, mutation in pairs(samples, mutations):
        trial = await try_out(folder / title.replace(" ", "-"), sample, mutation, seed)
        if trial is None:
            continue
        trials.append(trial)
        ended = "mended" if trial.green else "left red"
        ended += ", WORSE" if trial.worse else ""
        print(
            f"  {sample.name:18} {mutation.name:22} {trial.before:>22} → {trial.after:22}"
            f" {ended:9} {trial.moves} moves  {trial.detail}",
            flush=True,
        )
    green = [trial for trial in trials if trial.green]
    quick = [trial for trial in green if trial.moves <= MOVES]
    worse = [trial for trial in trials if trial.worse]
    moves = sum(trial.moves for trial in green) / len(green) if green else 0.0
    share = f"{len(green)} mended ({len(green) / len(trials):.0%})"
    print(
        f"  {title}: {len(trials)} broken, {share}, {len(quick)} within {MOVES} moves, "
        f"mean {moves:.2f} moves, {len(worse)} worse"
    )
    return len(quick) == len(trials) and not worse


async def by_model(samples: tuple[Sample, ...], seed: int, folder: Path) -> bool:
    """Kinds that only understanding mends: untouched without a model, green with a scripted one."""
    print(f"\nneeds a model, seed {seed}: fixers alone, then with a scripted model")
    good = True
    for sample, mutation in pairs(samples, BY_MODEL):
        alone = await try_out(folder / "alone", sample, mutation, seed)
        if alone is None:
            continue
        steps, status = await _with_model(sample, mutation, seed, folder / "model")
        good = good and not alone.worse and status == "done"
        left = "as it was" if alone.untouched else "changed"
        print(
            f"  {sample.name:18} {mutation.name:22} {alone.before:>22} → {alone.after:22} {left};"
            f" with the model: {status}, {steps}",
            flush=True,
        )
    return good


async def _with_model(
    sample: Sample, mutation: Mutation, seed: int, folder: Path
) -> tuple[str, str]:
    """A task breaks the project, and its model mends it when the checks are red."""
    for number in range(12):
        key = f"{seed} {sample.name} {mutation.name} {number}"
        files = broken(sample, mutation, key)
        if files is None:
            continue
        place = folder / re.sub(r"\W+", "-", key)
        lay_out(place / "project", files)
        turns = [
            *_turns(files, "agent", {"NOTES.md": "a note\n"}),
            *_turns(files, "repair", _differences(sample, files)),
        ]
        name = testing.write_script(place / "script.jsonl", turns)
        steps: list[RepairAttempt] = []

        def note(event: Event, steps: list[RepairAttempt] = steps) -> None:
            if isinstance(event.body, RepairAttempt):
                steps.append(event.body)

        async with testing.house(place) as app:
            app.events.subscribe(note)
            report = await app.run_task("write a note", model_name=name)
        if steps:
            mended = contents(place / "project", dict(sample.files)) == dict(sample.files)
            told = ", ".join(f"{one.by.split('/')[-1]}:{one.step}" for one in steps)
            return f"{told}{'' if mended else ' (not as before)'}", report.outcome.word
    return "no red", "skipped"


def _differences(sample: Sample, files: dict[str, str]) -> dict[str, str]:
    return {path: text for path, text in sample.files.items() if files.get(path) != text}


def _turns(files: dict[str, str], role: str, wanted: dict[str, str]) -> list[dict[str, object]]:
    calls = [
        {"name": "write_file", "arguments": {"path": path, "content": text, "mode": "overwrite"}}
        for path, text in wanted.items()
    ]
    return [{"role": role, "tool_calls": calls}, {"role": role, "text": "Done."}]


async def run(given: argparse.Namespace, folder: Path) -> bool:
    """Run the chosen sets."""
    everything = not (given.seen or given.held_out or given.installed or given.model)
    usable = tuple(s for s in SEEN if shutil.which(_PROGRAM[s.language]))
    unseen = tuple(s for s in HELD_OUT if shutil.which(_PROGRAM[s.language]))
    kinds = tuple(m for m in BY_FIXERS if given.kind in m.name)
    used = [*(usable if given.seen or everything else ())]
    used += unseen if given.held_out or everything else ()
    used += INSTALLED if given.installed or everything else ()
    good = all([await is_sound(sample, folder) for sample in used])
    if given.seen or everything:
        good &= await by_fixers("own samples", usable, kinds, given.seed, folder)
    if given.held_out or everything:
        good &= await by_fixers("held-out samples", unseen, kinds, given.seed + 1, folder)
    if given.installed or everything:
        tests_only = tuple(m for m in PYTHON if m.lint is None)
        await by_fixers("installed code", INSTALLED, tests_only, given.seed + 2, folder)
    if given.model or everything:
        good &= await by_model((*usable, *unseen), given.seed, folder)
    return good


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", default="", help="only kinds with this in their name")
    for name in ("--seen", "--held-out", "--installed", "--model"):
        parser.add_argument(name, action="store_true")
    given = parser.parse_args()
    random.seed(given.seed)
    os.environ.setdefault("VIRTUAL_ENV", sys.prefix)
    with tempfile.TemporaryDirectory() as folder:
        return 0 if asyncio.run(run(given, Path(folder))) else 1


if __name__ == "__main__":
    sys.exit(main())
