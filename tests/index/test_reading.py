from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evercontext.events.redact import MASK, Redactor
from evercontext.files.paths import Root
from evercontext.files.policy import agent_policy
from evercontext.index.reading import Reader, Unfit
from tests.index.world import opened, write

PLAIN = "correct-horse-battery"
"""A secret without a shape: only whoever holds it knows that it is one."""


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with Root.open(tmp_path) as root:
        yield Reader(root, agent_policy(), Redactor([PLAIN, f"first line\n{PLAIN} of two"]))


@pytest.mark.case(134)
@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a.py", f"connect({PLAIN!r})"),
        ("a.md", f"The word is {PLAIN}."),
        ("a.yaml", "db:\n  password: hunter2hunter2"),
        ("a.yml", "- DB_PASSWORD=hunter2hunter2"),
        ("a.ini", "api_key = hunter2hunter2"),
        ("a.properties", "spring.datasource.password=hunter2hunter2"),
        ("a.sh", "export GITHUB_TOKEN=hunter2hunter2"),
        ("a.toml", "access-key = hunter2hunter2"),
        ("notes.txt", "password: hunter2hunter2"),
    ],
)
def test_a_secret_is_masked_where_it_stands(
    tmp_path: Path, reader: Reader, name: str, line: str
) -> None:
    write(tmp_path, {name: f"before\n{line}\nafter\n"})
    source = reader.read(name)
    last = 2 + line.count("\n")
    for text in (source.text, reader.show(name, 1, last + 1)):
        assert PLAIN not in text
        assert "hunter2" not in text
        assert MASK in text
        assert text.split("\n")[last] == "after"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a.py", "token = parse_next_token(stream)"),
        ("a.yaml", "tokenizer: sentencepiece"),
        ("a.yaml", "max_tokens: 4096"),
        ("a.yaml", "password: ${DB_PASSWORD_OF_THE_SERVER}"),
        ("a.sh", "TOKEN=$(get_the_token_here)"),
        ("a.ini", "secretary = a person with papers"),
    ],
)
def test_what_is_no_secret_stays(tmp_path: Path, reader: Reader, name: str, line: str) -> None:
    write(tmp_path, {name: f"{line}\n"})
    assert reader.read(name).text == f"{line}\n"


@pytest.mark.case(134)
@pytest.mark.parametrize(
    "secret",
    ["sk-" + "a1" * 12, "ghp_" + "b2" * 12, "AKIA" + "C3" * 8, "xoxb-" + "4" * 12,
     "eyJ" + "d" * 9 + ".eyJ" + "e" * 9 + ".f", "Bearer " + "g5" * 9],
)  # fmt: skip
def test_a_credential_is_found_behind_words_that_only_look_like_its_beginning(
    tmp_path: Path, reader: Reader, secret: str
) -> None:
    text = f"a task-list\ntask-group_sk- ask-{secret[:2]} ({secret}) risk-free {secret}\nthe end"
    write(tmp_path, {"a.md": text})
    read = reader.read("a.md").text
    assert secret.split()[-1] not in read
    assert read.split("\n")[::2] == ["a task-list", "the end"]
    assert "risk-free" in read
    assert "task-group_sk-" in read
    assert reader.show("a.md", 2, 2) == read.split("\n")[1]


@pytest.mark.case(134)
def test_a_secret_of_two_lines_keeps_the_lines_after_it(tmp_path: Path, reader: Reader) -> None:
    write(tmp_path, {"a.py": f"x = '''first line\n{PLAIN} of two'''\ny = 1\n"})
    assert reader.read("a.py").text.split("\n")[2] == "y = 1"
    assert "of two" not in reader.show("a.py", 2, 2)


@pytest.mark.case(134)
@pytest.mark.parametrize(
    "name",
    ["secrets.yaml", "config/credentials.json", "prod-secrets.toml", "db.password.txt",
     "kubeconfig", "service-account.json", "database.env.json", "prod.env", ".env.local",
     "deploy/id_ed25519"],
)  # fmt: skip
async def test_files_of_secrets_are_not_indexed(tmp_path: Path, name: str) -> None:
    write(tmp_path, {name: f"it: {PLAIN}\n", "secrets.py": "def make_secret(): pass\n"})
    async with opened(tmp_path) as index:
        await index.update()
        assert list(await index.table.rows()) == ["secrets.py"]


def test_a_key_that_begins_after_the_shown_lines_leaves_them_alone(tmp_path: Path) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----\n"
    (tmp_path / "a.py").write_text(f"one\n{key}two\n{key}", "utf-8")
    with Root.open(tmp_path) as root:
        reader = Reader(root, agent_policy())
        assert reader.show("a.py", 1, 1) == "one"
        assert "MII" not in reader.show("a.py", 3, 3)
        assert reader.show("a.py", 5, 5) == "two"
        assert "MII" not in reader.show("a.py", 7, 99)


def test_what_became_binary_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"one\ntwo\0\n")
    with Root.open(tmp_path) as root, pytest.raises(Unfit):
        Reader(root, agent_policy()).show("a.py", 1, 1)
