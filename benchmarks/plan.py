"""How often the same task in the same tree gets the same plan, with the cache and without.

    python benchmarks/plan.py                          a model that never plans twice alike
    python benchmarks/plan.py --model embedded:smollm2 or any other that can be opened

Each plan is made by `plan` in a house of its own, as a new process would make it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from pathlib import Path

from evercontext import settings as sources
from evercontext import testing
from evercontext.agent.planner import Planned
from evercontext.app import EverContext
from evercontext.errors import EverContextError

TASK = "Add a function that greets a user by name, and a test for it"
FILES = {
    "app/__init__.py": "",
    "app/users.py": "def load_user(name):\n    return {'name': name}\n",
    "tests/test_users.py": "from app.users import load_user\n",
}


def fickle(path: Path, seed: int) -> str:
    """A model that plans the same work in another way each time."""
    source = random.Random(seed)
    titles = ["Write greet", "Test greet", "Read users.py", "Document greet"]
    tasks = source.sample(titles, source.randint(1, len(titles)))
    text = json.dumps({"tasks": [{"id": f"t{n}", "title": t} for n, t in enumerate(tasks)]})
    return testing.write_script(path, [{"role": "planner", "text": text}])


async def plan_once(folder: Path, model: str, *, cache: bool) -> Planned:
    flags = {"planner": model, "model_name": model, "plan_cache": cache}
    environment = {"EC_HOME": str(folder / "home")}
    settings = sources.load({"root": str(folder / "project"), **flags}, environment=environment)
    async with EverContext.open(settings) as app:
        return await app.plan_task(TASK)


async def repeat(folder: Path, model: str | None, times: int, *, cache: bool) -> list[str]:
    made = []
    for number in range(times):
        name = model or fickle(folder / "planner.jsonl", number)
        try:
            planned = await plan_once(folder, name, cache=cache)
            made.append(json.dumps(planned.plan.to_json(), sort_keys=True))
        except EverContextError as problem:
            made.append(f"no plan {number}: {problem}")
    return made


def report(name: str, made: list[str], started: float) -> None:
    same = sum(plan == made[0] for plan in made) if not made[0].startswith("no plan") else 0
    failed = sum(plan.startswith("no plan") for plan in made)
    spent = time.process_time() - started
    print(
        f"{name:<22}{same} of {len(made)} identical to the first, {len(set(made))} distinct,"
        f" {failed} failed, {spent / len(made) * 1000:.0f} CPU-ms each"
    )


async def main() -> int:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--model", help="planner; default: a script that varies")
    reader.add_argument("--times", type=int, default=20)
    given = reader.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        testing.tiny_repository(folder / "project", FILES)
        if given.model and given.model.startswith("embedded:"):
            (folder / "home").mkdir()
            (folder / "home" / "models").symlink_to(Path.home() / ".nebula" / "models")
        print(f"planner {given.model or 'scripted, varying by seed'}, task {TASK!r}")
        for name, cache in (("cache on", True), ("cache off", False)):
            started = time.process_time()
            report(name, await repeat(folder, given.model, given.times, cache=cache), started)
        (folder / "project" / "app" / "users.py").write_text("changed = True\n")
        name = given.model or fickle(folder / "planner.jsonl", 99)
        planned = await plan_once(folder, name, cache=True)
        anew = "from the cache" if planned.source == "cache" else "planned anew"
        print(f"{'changed tree':<22}{anew}")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
