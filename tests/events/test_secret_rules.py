from __future__ import annotations

import base64
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from evercontext.events.redaction import LONGEST, MASK, Redactor
from evercontext.events.secret_rules import OWN, RuleSet, compiled, every_rule, rules

REPOSITORY = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def corpus() -> ModuleType:
    """The corpora of the benchmark."""
    path = REPOSITORY / "benchmarks" / "secret_rules.py"
    spec = importlib.util.spec_from_file_location("benchmark_secrets", path)
    assert spec
    assert spec.loader
    module = sys.modules["benchmark_secrets"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LABELLED = [
    ("https://user:{}@host.test/x", "hunter2hunter2"),
    ("password: {}", "hunter2"),
    ('"db_password": "{}"', "correcthorse"),
    ("Authorization: Basic {}", base64.b64encode(b"me:hunter2").decode()),
    ("aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzz9Q8wE7rT"),
    ("AccountKey={};", base64.b64encode(bytes(range(64))).decode()),
    ("パスワードは{}です", "hunter2!"),
]
SHAPES = [
    "ec_" + "aB3-_xYz9" * 5,
    "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "SG." + "ngeVfQFYQlKU0ufo8x5d1A" + "." + "TwL2iGABf9DHoTf09kqeF8tAmbihYzrnopKcV1s5cr0",
    "M" + "Tk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs",
    "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2,
]


@pytest.mark.case(135)
@pytest.mark.parametrize("shape", SHAPES)
def test_these_were_in_clear_in_traces(shape: str) -> None:
    """X18."""
    for place in ("{}", "it is {}.", "x = '{}'", "鍵は{}です", "({})"):
        assert shape not in Redactor().masked(place.format(shape))
        assert shape not in Redactor().line({"data": {"text": place.format(shape)}})


@pytest.mark.case(135)
@pytest.mark.parametrize(("place", "secret"), LABELLED)
def test_a_secret_is_known_by_what_stands_before_it(place: str, secret: str) -> None:
    """X18."""
    text = place.format(secret)
    assert secret not in Redactor().masked(text)
    assert secret not in Redactor().line({"data": [text]})


@pytest.mark.case(135)
def test_a_secret_is_known_by_the_name_it_has_in_an_object() -> None:
    """X18: the name of an argument is no part of its text."""
    value = {"password": "hunter2", "path": "a.py", "tokens": 12, "key": "main-branch"}
    assert Redactor().value(value) == {**value, "password": MASK}
    assert json.loads(Redactor().line(value)) == {**value, "password": MASK}


@pytest.mark.case(135)
def test_a_secret_of_the_environment_is_masked_in_base64_and_in_addresses() -> None:
    """X18."""
    secret = "tr0ub4dor&3/+correct"
    redactor = Redactor([secret])
    for before in ("", "a", "ab", "user:", "user:x"):
        text = base64.b64encode(f"{before}{secret}:rest".encode()).decode()
        for spelling in (text, text.replace("+", "-").replace("/", "_")):
            assert MASK in redactor.masked(f"data {spelling} end")
            assert MASK in redactor.line({"data": spelling})
    assert "tr0ub4dor" not in redactor.masked("?q=tr0ub4dor%263%2F%2Bcorrect")


def test_innocent_lines_stay_as_they_are(corpus: ModuleType) -> None:
    """X18: a false alarm costs a word of a log, and of a conversation that is read again."""
    redactor = Redactor()
    assert [line for line in corpus.INNOCENT if redactor.masked(line) != line] == []


def test_every_documented_format_is_masked_wherever_it_stands(corpus: ModuleType) -> None:
    """X18."""
    redactor = Redactor([corpus.KNOWN])
    examples = list(corpus.formats())
    assert len(examples) > 300
    assert [e.text for e in examples if e.secret in redactor.masked(e.text)] == []


def test_the_examples_of_the_public_rules_are_masked(corpus: ModuleType) -> None:
    """X18: but for one of 250, which is half of a file."""
    secrets = [example for example in corpus.gitleaks() if example.secret]
    missed = [e.text for e in secrets if Redactor().masked(e.text) == e.text]
    assert len(secrets) >= 250
    assert missed == ['"type": "service_account"']


def test_no_text_that_a_rule_matches_is_without_its_mark(corpus: ModuleType) -> None:
    """A mark of ours stands for a keyword; a keyword of upstream is part of what the rule asks."""
    texts = [example.text.encode() for example in corpus.gitleaks()]
    ours = {rule.id for rule in OWN} | {"generic-api-key", "jwt", "aws-access-token"}
    ours |= {"twilio-api-key", "sendgrid-api-token", "harness-api-key", "vault-service-token"}
    unmarked = []
    for rule in (rule for rule in rules() if rule.id in ours):
        mark = compiled(rule.mark)
        matched = [text for text in texts if rule.compiled.search(text)]
        unmarked += [(rule.id, text[:80]) for text in matched if not mark.search(text)]
    assert unmarked == []


def test_a_line_is_sent_to_the_closer_look_whenever_its_texts_are(corpus: ModuleType) -> None:
    """JSON writes quotes and line ends otherwise; the mark of a line must see through it."""
    redactor = Redactor([corpus.KNOWN])
    for example in (*corpus.gitleaks(), *corpus.formats()):
        value = {"data": {"text": example.text}}
        assert json.loads(redactor.line(value)) == redactor.value(value)


def test_a_text_of_every_mark_is_cut_before_it_is_looked_through() -> None:
    """X18: two hundred rules over a text of this length would hold the event loop."""
    text = (REPOSITORY / "src/evercontext/events/data/secret_rules.json").read_text("utf-8") * 3
    assert len(every_rule().candidates(text[:100_000].encode())) > 100
    shown = Redactor().text(text)
    assert shown.endswith("more characters]")
    assert len(shown) < LONGEST / 4


def test_rules_are_looked_for_one_by_one_where_the_set_gives_up() -> None:
    class Exhausted:
        def Match(self, data: bytes) -> list[int]:
            return []

    some = RuleSet(rules()[:20])
    some.__dict__["_kinds"] = Exhausted()
    assert [rule.id for rule in some.candidates(b"ghp_" + b"a1" * 18)] == ["github"]
    assert some.candidates(b"nothing") == []
