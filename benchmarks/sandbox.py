"""Attack the cage in each layer and print what held, and what a cage costs.

    python -m benchmarks.sandbox [--uncaged]

Every probe runs in a fresh world (tests/process/world.py). ``blocked`` means that the attack failed
inside and that nothing outside differs afterwards. ``--uncaged`` runs those that are harmless
without a cage as well, to show that they can find a hole. Exits 1 if a cage let anything through.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

# Also when run as a file: the attackers, probes and samples are those of the tests.
sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.process.probes import PROBES
from tests.process.world import ENVIRONMENT, World, made

from evercontext.process.run import run
from evercontext.process.sandbox import Layer, available

DANGEROUS = {"fork_bomb", "shared_memory", "private_memory", "mount", "unmount", "burn_processor"}
LAUNCHES = 30


async def attack(name: str, layer: Layer) -> tuple[bool, float, str]:
    with tempfile.TemporaryDirectory() as place, made(Path(place)) as world:
        before = world.snapshot()
        done = await world.attack(name, layer)
        held = "ESCAPED" not in done.text and not done.timed_out and done.exit_code != 0
        held = held and world.snapshot() == before
        said = done.reached or done.text.strip().splitlines()[-1:] or f"ended by {done.exit_code}"
        return held, done.duration, said if isinstance(said, str) else said[0]


async def attack_all(layer: Layer, names: list[str]) -> bool:
    print(f"\n## {layer}")
    held = 0
    for name in names:
        ok, seconds, said = await attack(name, layer)
        held += ok
        print(
            f"{'blocked' if ok else 'ESCAPED':8} {seconds:6.2f} s  {name:34} {said[:70]}",
            flush=True,
        )
    print(f"{layer}: {held} of {len(names)} blocked")
    return held == len(names)


async def cost(world: World, layer: Layer | None) -> tuple[float, float]:
    """Return the median wall and the mean processor milliseconds of a command that does nothing."""
    taken = []
    before = _processor()
    for _ in range(LAUNCHES):
        started = time.perf_counter()
        sandbox = world.sandbox(layer) if layer else None
        await run(["true"], cwd=world.root, timeout=60, env=ENVIRONMENT, sandbox=sandbox)
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken), (_processor() - before) / LAUNCHES * 1000


def _processor() -> float:
    used = os.times()
    return used.children_user + used.children_system + used.user + used.system


async def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--uncaged", action="store_true", help="also without a cage")
    uncaged = options.parse_args().uncaged
    layers = []
    for finding in available():
        print(f"{finding.layer}: {'works' if finding.works else 'no'} ({finding.why})")
        layers += [finding.layer] if finding.works else []
    held = [await attack_all(layer, sorted(PROBES)) for layer in layers]
    if uncaged:
        await attack_all(Layer.NONE, sorted(set(PROBES) - DANGEROUS))
    print("\n## cost of one command in milliseconds: wall, processor")
    with tempfile.TemporaryDirectory() as place, made(Path(place)) as world:
        for chosen in (None, *layers):
            wall, processor = await cost(world, chosen)
            print(f"{chosen or 'no cage':12} {wall:7.1f} {processor:7.1f}")
    return 0 if held and all(held) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
