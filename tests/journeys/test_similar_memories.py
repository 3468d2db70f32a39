"""F2: memories that differ in a number, a date or a name are different memories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.command import evercontext

MEETINGS = [
    f"Meeting with {who} about the budget on {day} at {hour}."
    for who, day, hour in (
        ("Anna", "3 May", "9:00"),
        ("Bernd", "4 May", "9:00"),
        ("Anna", "4 May", "9:00"),
        ("Anna", "4 May", "15:00"),
    )
]
TEAS = [f"The kitchen ordered {n} boxes of green tea for floor {n}." for n in range(1, 13)]
BUILDS = [f"Build {n} failed in the lint step." for n in range(400, 420)]
JAPANESE = [f"{who}さんとの会議は{day}日の午後です。" for who in ("田中", "佐藤") for day in (3, 4)]
SWAPPED = ["Anna paid Bernd 20 euros.", "Bernd paid Anna 20 euros.", "Anna did not pay Bernd."]


def recalled(project: Path, question: str, limit: int, told: Sequence[str]) -> list[str]:
    turns = [{"id": f"t{n}", "content": text} for n, text in enumerate(told)]
    lines = [json.dumps(turn, ensure_ascii=False) for turn in turns]
    (project / "told.jsonl").write_text("\n".join(lines), encoding="utf-8")
    kept = evercontext("memory", "import", "told.jsonl", cwd=project)
    assert kept.code == 0, kept.err
    arguments = ("memory", "search", question, "--limit", str(limit), "--json")
    found = evercontext(*arguments, cwd=project)
    return [memory["content"] for memory in json.loads(found.out)["results"]]


@pytest.mark.parametrize(
    ("told", "question", "limit", "most"),
    [
        (MEETINGS, "meetings about the budget", 10, 4),
        (TEAS, "orders of green tea", 5, 5),
        (BUILDS, "builds that failed", 20, 20),
        (JAPANESE, "会議はいつですか", 10, 4),
        (SWAPPED, "who paid whom?", 10, 3),
    ],
    ids=["meetings", "teas", "builds", "japanese", "swapped"],
)
def test_all_of_them_are_found(
    tmp_path: Path, told: list[str], question: str, limit: int, most: int
) -> None:
    found = recalled(tmp_path, question, limit, told)
    assert len(found) == len(set(found)) == most
    assert set(found) <= set(told)


def test_repeated_words_do_not_take_the_places_of_others(tmp_path: Path) -> None:
    """What was said forty times is one result, and further candidates fill the list up."""
    said = ["The green tea is ready.", "Green tea ready!", "So, the green tea is really ready now."]
    others = [f"Green tea was bought by {who}." for who in ("Anna", "Bernd", "Carla", "Doris")]
    found = recalled(tmp_path, "Is the green tea ready?", 5, said * 14 + others)
    assert len([text for text in found if "ready" in text]) == 1
    assert set(others) < set(found)
