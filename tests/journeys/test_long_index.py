"""Index, hook, search and memory through many commits of a real project, in two languages."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from evercontext.domain.event import Renamed
from evercontext.events.log_reader import read, segments
from tests.cli.command import evercontext, home
from tests.journeys.repositories import git, repository

PURPOSES = [
    ("reckon_invoice_total", "Sum the positions of an invoice.", "請求書の明細を合計する"),
    ("send_parcel_label", "Print the label of a parcel.", "小包の送り状を印刷する"),
    (
        "rotate_session_secret",
        "Replace the secret of all sessions.",
        "セッションの秘密鍵を交換する",
    ),
    ("guess_reader_language", "Guess which language a reader wants.", "読者の言語を推測する"),
    (
        "shrink_uploaded_photo",
        "Make an uploaded photo smaller.",
        "アップロードされた写真を縮小する",
    ),
    ("count_failed_logins", "Count how often a login failed.", "ログインの失敗を数える"),
    ("plan_night_backup", "Say when the next backup runs.", "夜間バックアップの時刻を決める"),
    ("merge_two_baskets", "Join two shopping baskets.", "二つの買い物かごを統合する"),
]


class Story:
    """The project, and where each function must be found."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.places: dict[str, str] = {}
        self.commits = self.questions = self.renames = 0

    def commit(self, words: str) -> None:
        git(self.project, "add", "-A")
        git(self.project, "commit", "-qm", words)
        self.commits += 1

    def add(self, number: int, folder: str = "src/flask") -> None:
        """One more module, described in one of the two languages."""
        name, english, japanese = PURPOSES[number % len(PURPOSES)]
        name = f"{name}_{number}"
        path = f"{folder}/part_{number}.py"
        about = english if number % 2 else japanese
        text = f'def {name}(given):\n    """{about}"""\n    return [given, {number}]\n'
        (self.project / path).parent.mkdir(parents=True, exist_ok=True)
        (self.project / path).write_text(text)
        self.places[name] = path
        self.commit(f"add {name}")

    def move(self, name: str, folder: str) -> None:
        old = self.places[name]
        new = f"{folder}/{Path(old).name}"
        (self.project / new).parent.mkdir(parents=True, exist_ok=True)
        git(self.project, "mv", old, new)
        self.places[name] = new
        self.renames += 1
        self.commit(f"move {name}")

    def check(self, *more: str) -> list[dict[str, Any]]:
        """Ask for everything there is; each answer must be true of the files as they are."""
        asked = [*self.places, *more]
        lines = "".join(f"{line}\n" for line in asked)
        ended = evercontext("search", "--stdin", "-k", "3", cwd=self.project, stdin=lines)
        answers = [json.loads(line) for line in ended.out.splitlines()]
        assert [answer["query"] for answer in answers] == asked, ended.err
        for answer in answers:
            assert "error" not in answer, answer
            for chunk in answer["chunks"]:
                self._is_on_disk(chunk)
        for (name, path), answer in zip(self.places.items(), answers, strict=False):
            assert answer["chunks"], name
            assert (answer["chunks"][0]["path"], answer["chunks"][0]["symbol"]) == (path, name)
        self.questions += len(asked)
        return answers[len(self.places) :]

    def _is_on_disk(self, chunk: dict[str, Any]) -> None:
        file = self.project / chunk["path"]
        assert file.is_file(), chunk
        lines = file.read_text().splitlines()
        assert 1 <= chunk["start_line"] <= chunk["end_line"] <= len(lines), chunk
        first = chunk["text"].splitlines()[0]
        assert first == lines[chunk["start_line"] - 1], chunk


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.contract("E1", "E5", "E8", "E19", "E50", "R54")
def test_the_index_and_memory_follow_a_project(tmp_path: Path) -> None:
    project = repository("flask", tmp_path)
    built = evercontext("index", "--json", cwd=project)
    assert built.code == 0, built.err
    tracked = git(project, "ls-files").splitlines()
    assert 0 < json.loads(built.out)["files"] <= len(tracked)
    assert evercontext("hook", "install", cwd=project).code == 0
    assert evercontext("hook", "status", cwd=project).code == 0
    story = Story(project)
    for number in range(8):
        story.add(number)
    _ask_in_words(story)
    _move_and_branch(story)
    _check_hook(story)
    _check_memory(project, story)
    assert story.commits + story.questions >= 60


def _ask_in_words(story: Story) -> None:
    japanese = [PURPOSES[number][2] for number in range(0, 8, 2)]
    english = [PURPOSES[number][1] for number in range(1, 8, 2)]
    answers = story.check(*japanese, *english)
    for number, answer in zip([*range(0, 8, 2), *range(1, 8, 2)], answers, strict=True):
        path = f"src/flask/part_{number}.py"
        assert path in [chunk["path"] for chunk in answer["chunks"]], answer["query"]


def _move_and_branch(story: Story) -> None:
    """Renames, a branch with modules of its own, and back: only what is there is found."""
    for name in list(story.places)[:4]:
        story.move(name, "src/flask/moved")
    story.check()
    on_main = dict(story.places)
    git(story.project, "switch", "-qc", "side")
    for number in range(8, 12):
        story.add(number, "src/flask/side")
    side_only = [name for name in story.places if name not in on_main]
    story.check()
    git(story.project, "switch", "-q", "main")
    story.places = on_main
    for answer in story.check(*side_only):
        paths = [chunk["path"] for chunk in answer["chunks"]]
        assert not any(path.startswith("src/flask/side") for path in paths), paths
    git(story.project, "merge", "-q", "side")
    story.places |= {
        name: f"src/flask/side/part_{name.rpartition('_')[2]}.py" for name in side_only
    }
    gone = next(iter(story.places))
    git(story.project, "rm", "-q", story.places.pop(gone))
    story.commit("take one away")
    (answer,) = story.check(gone)
    assert gone not in json.dumps([chunk["text"] for chunk in answer["chunks"]])


def _check_hook(story: Story) -> None:
    """What the hooks announced is indexed without anybody asking, and the figures agree.

    A file that was moved before it was ever indexed is in no event.
    """
    evercontext("hook", "drain", cwd=story.project)
    renamed = _renamed()
    assert len({body.new for body in renamed}) == len(renamed) <= story.renames, renamed
    assert all(body.found_only_under_new_path for body in renamed)
    figures = json.loads(evercontext("kpi", "--json", cwd=story.project).out)
    share = figures["rename_accuracy"]
    assert (share["hits"], share["of"]) == (len(renamed), len(renamed))
    name, place = list(story.places.items())[-1]
    paths: list[str] = []
    deadline = time.monotonic() + 280
    # A hook in the background may be at work on the last commit.
    while not paths and time.monotonic() < deadline:
        committed = evercontext("search", name, "--committed", "--json", cwd=story.project)
        paths = [chunk["path"] for chunk in json.loads(committed.out)["chunks"]]
    assert paths[0] == place
    assert git(story.project, "status", "--porcelain") == ""


def _renamed() -> list[Renamed]:
    events = [event for place in segments(home() / "traces") for event in read(place)]
    return [event.body for event in events if isinstance(event.body, Renamed)]


def _check_memory(project: Path, story: Story) -> None:
    facts = [
        (f"en{n}", f"On March {n} 2026 we merged the branch for ticket {400 + n}")
        for n in range(1, 11)
    ]
    facts += [
        (f"ja{n}", f"2026年4月{n}日にチケット{500 + n}の不具合を直した") for n in range(1, 11)
    ]
    lines = "".join(
        json.dumps({"id": id, "content": text}, ensure_ascii=False) + "\n" for id, text in facts
    )
    taken = evercontext("memory", "import", "-", cwd=project, stdin=lines)
    assert (taken.code, taken.out) == (0, "20 memories taken in\n"), taken.err
    questions = [
        *(f"What was merged for ticket {400 + n}?" for n in range(1, 11)),
        *(f"チケット{500 + n}の不具合はいつ直した?" for n in range(1, 11)),
    ]
    given = "".join(f"{question}\n" for question in questions)
    told = evercontext("memory", "search", "--stdin", "--json", cwd=project, stdin=given)
    answers = [json.loads(line) for line in told.out.splitlines()]
    known = dict(facts)
    for (id, _), answer in zip(facts, answers, strict=True):
        results = answer["results"]
        assert results[0]["id"] == id, answer["query"]
        assert all(known[one["id"]] == one["content"] for one in results)
    story.questions += len(questions)
    assert evercontext("memory", "forget", "en3", "ja3", cwd=project).code == 0
    listed = json.loads(evercontext("memory", "list", "-n", "100", "--json", cwd=project).out)
    assert {one["id"] for one in listed} == set(known) - {"en3", "ja3"}
    again = evercontext("memory", "import", "-", cwd=project, stdin=lines)
    assert again.out == "0 memories taken in, 20 known already or forgotten\n"
    git(project, "switch", "-q", "side")
    there = evercontext("memory", "search", "ticket 405", "--json", cwd=project)
    assert json.loads(there.out)["results"][0]["id"] == "en5", "a branch is the same project"
