"""A few of the seeded trials of ``benchmarks.repair``, where the programs are installed."""

from __future__ import annotations

import dataclasses
import os
import pwd
import shutil
import sys
from pathlib import Path

import pytest

from tests.agent.repair.mutations import BY_MODEL, JAVASCRIPT, PYTHON, RUST, Mutation
from tests.agent.repair.samples import BANK_RS, CART_JS, SHOP, Sample
from tests.agent.repair.trial import try_out

UNITTEST = {"test_cmd": f"{sys.executable} -m unittest discover -q -s tests -t ."}
SHOP = dataclasses.replace(SHOP, settings=UNITTEST)


def chosen(mutations: tuple[Mutation, ...], *names: str) -> list[Mutation]:
    return [mutation for mutation in mutations if mutation.name in names]


PAIRS = [
    *(
        (SHOP, one)
        for one in chosen(
            PYTHON,
            "missing import",
            "typo in a definition",
            "circular import",
            "wrong path",
            "layout",
        )
    ),
    *((CART_JS, one) for one in chosen(JAVASCRIPT, "missing import", "syntax: bracket")),
    *((BANK_RS, one) for one in chosen(RUST, "missing import")),
]


@pytest.fixture(autouse=True)
def _own_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)


def _needs(sample: Sample) -> None:
    program = {"javascript": "node", "rust": "cargo"}.get(sample.language, "sh")
    found = shutil.which(program)
    home = pwd.getpwuid(os.getuid()).pw_dir  # hidden in a cage, once HOME is another one
    if found is None or Path(found).is_relative_to(home):
        pytest.skip(f"{program} is not installed where a cage shows it")


@pytest.mark.contract("E47")
@pytest.mark.parametrize(("sample", "mutation"), PAIRS, ids=lambda part: part.name)
async def test_fixers_mend_their_kinds_within_two_moves(
    tmp_path: Path, sample: Sample, mutation: Mutation
) -> None:
    _needs(sample)
    trial = await try_out(tmp_path, sample, mutation, seed=5)
    assert trial is not None
    assert (trial.green, trial.worse, trial.moves in (1, 2)) == (True, False, True), trial


@pytest.mark.contract("E47")
async def test_what_only_understanding_mends_is_left_byte_for_byte(tmp_path: Path) -> None:
    trial = await try_out(tmp_path, SHOP, BY_MODEL[0], seed=5)
    assert trial is not None
    assert (trial.green, trial.worse, trial.untouched) == (False, False, True), trial
