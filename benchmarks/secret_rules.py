"""How well and how fast secrets are masked before anything is written.

    python benchmarks/secret_rules.py [--misses] [--code DIRECTORY] [--before COMMIT]

Three corpora. ``formats``: the credentials of many vendors, made at random (with a fixed seed)
after their documented form, each in the places where they are met: a setting, JSON, a header, a
sentence in English and in Japanese; and lines that look like them and are none. ``gitleaks``: the
examples that gitleaks' own tests name literally; its innocent ones hold many placeholders in the
shape of a key (``ghp_xxxx``), which are masked on purpose and count as false alarms. ``code``:
the Python files of the installed packages, where whatever is masked counts as a false alarm.
Precision and recall are of whole texts: a secret counts as masked if nothing of it is left. With
``--before`` the same is printed of another commit.
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import json
import random
import string
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
EXAMPLES = Path(__file__).parent / "data" / "secret_examples.jsonl"
ALPHANUMERIC = string.ascii_letters + string.digits
URL_SAFE = ALPHANUMERIC + "_-"
HEX = "0123456789abcdef"
KNOWN = "kN0wn-env/Secret+value42"
"""A secret of the environment: known by its value, and therefore in base64 as well."""


@dataclass(frozen=True)
class Example:
    """A text and what must not be left of it; nothing for an innocent one."""

    kind: str
    text: str
    secret: str = ""


def formats(seed: int = 20) -> Iterator[Example]:
    """Yield credentials after their documented form, in the places where they are met."""
    pick = random.Random(seed)

    def some(alphabet: str, size: int) -> str:
        return "".join(pick.choices(alphabet, k=size))

    shapes: dict[str, Callable[[], str]] = {
        "evercontext": lambda: "ec_" + some(URL_SAFE, 40) + "4a",
        "openai": lambda: "sk-proj-" + some(URL_SAFE, 74) + "T3BlbkFJ" + some(URL_SAFE, 74),
        "anthropic": lambda: "sk-ant-api03-" + some(URL_SAFE, 93) + "AA",
        "stripe": lambda: "sk_live_" + some(ALPHANUMERIC, 24),
        "stripe-restricted": lambda: "rk_live_" + some(ALPHANUMERIC, 24),
        "github": lambda: "ghp_" + some(ALPHANUMERIC, 36),
        "github-fine": lambda: "github_pat_" + some(ALPHANUMERIC + "_", 82),
        "gitlab": lambda: "glpat-" + some(URL_SAFE, 20),
        "slack": lambda: (
            f"xoxb-{some('123456789', 12)}-{some('123456789', 12)}-{some(ALPHANUMERIC, 24)}"
        ),
        "aws-id": lambda: "AKIA" + some(string.ascii_uppercase + "234567", 16),
        "google": lambda: "AIza" + some(URL_SAFE, 35),
        "npm": lambda: "npm_" + some(ALPHANUMERIC, 36),
        "pypi": lambda: "pypi-AgEIcHlwaS5vcmc" + some(URL_SAFE, 80),
        "huggingface": lambda: "hf_" + some(string.ascii_letters, 34),
        "sendgrid": lambda: f"SG.{some(URL_SAFE, 22)}.{some(URL_SAFE, 43)}",
        "discord": lambda: f"M{some(ALPHANUMERIC, 23)}.{some(URL_SAFE, 6)}.{some(URL_SAFE, 27)}",
        "age": lambda: "AGE-SECRET-KEY-1" + some("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
        "digitalocean": lambda: "dop_v1_" + some(HEX, 64),
        "shopify": lambda: "shpat_" + some(HEX, 32),
        "twilio": lambda: "SK" + some(HEX, 32),
        "vault": lambda: "hvs." + some(URL_SAFE, 95),
        "databricks": lambda: "dapi" + some(HEX, 32),
        "linear": lambda: "lin_api_" + some(ALPHANUMERIC, 40),
        "azure-client": lambda: f"{some(ALPHANUMERIC, 3)}8Q~{some(ALPHANUMERIC + '_', 34)}",
        "jwt": lambda: f"eyJhbGciOiJIUzI1NiJ9.eyJ{some(ALPHANUMERIC, 30)}.{some(URL_SAFE, 43)}",
        "known": lambda: KNOWN,
    }
    places = (
        "{s}",
        'API = "{s}"',
        "export THING={s}",
        '{{"value":"{s}"}}',
        "- thing: {s}  # prod",
        "curl -H 'X-Thing: {s}' https://api.test",
        "I used {s}, and it failed.",
        "鍵は{s}です。",
        "({s})",
    )
    for kind, make in shapes.items():
        for place in places:
            secret = make()
            yield Example(kind, place.format(s=secret), secret)
    yield from _labelled(some)


def _labelled(some: Callable[[str, int], str]) -> Iterator[Example]:
    """Yield secrets that only what stands around them tells."""
    for _ in range(4):
        word, key = some(ALPHANUMERIC, 11) + "7!", some(ALPHANUMERIC + "/+", 40)
        login = base64.b64encode(f"deploy:{word}".encode()).decode()
        storage = base64.b64encode(some(ALPHANUMERIC, 64).encode()).decode()
        hidden = base64.b64encode(f"{some(ALPHANUMERIC, 5)}:{KNOWN}:tail".encode()).decode()
        token = some(HEX, 32)
        yield Example("url", f"postgres://app:{word}@db.internal:5432/main", word)
        yield Example("url", f"git clone https://me:{word}@git.test/x.git failed", word)
        yield Example("password", f"password: {word}", word)
        yield Example("password", f'db_password = "{word}"', word)
        yield Example("password", f'{{"user":"a","password":"{word}"}}', word)
        yield Example("password", f"mysql --password={word} -u root", word)
        yield Example("password", f"the password is {word}", word)
        yield Example("password", f"パスワードは{word}です", word)
        yield Example("password", f"PGPASSWORD={word} psql", word)
        yield Example("basic", f"Authorization: Basic {login}", login)
        yield Example("bearer", f"Authorization: Bearer {token}", token)
        yield Example("aws-secret", f"aws_secret_access_key = {key}", key)
        yield Example("aws-secret", f'"SecretAccessKey": "{key}"', key)
        yield Example("azure", f"AccountName=x;AccountKey={storage};EndpointSuffix=y", storage)
        yield Example("generic", f"MY_SERVICE_TOKEN={token}", token)
        yield Example("generic", f"x-api-key: {token}", token)
        yield Example(
            "base64", f"data: {hidden}", base64.b64encode(KNOWN[2:-2].encode()).decode()[2:-4]
        )


INNOCENT = """
password: str
password: string
def login(user: str, password: str) -> None:
password = getpass.getpass()
password=settings.password
password = os.environ["DB_PASSWORD"]
self.password = hash_password(password)
password: ${DB_PASSWORD}
password: "{{ vault.db }}"
raise ValueError('password is required')
the password is hashed with bcrypt
password: <your password>
token = next(tokens)
key = lambda item: item.name
api_key=os.getenv('OPENAI_API_KEY')
commit 401720e8a1b2c3d4e5f60718293a4b5c6d7e8f90
sha256:9f86d081884c7d659a2feaa0c55ad0159f86d081884c7d659a2feaa0c55ad015
id 8c35037b-2ac8-4678-8fc1-5ce904652276
for key, value in sorted(table.items()):
https://example.com/a:b/c@2x.png
https://github.com/gitleaks/gitleaks
user@example.com:repo.git
scp me@host.test:/tmp/a .
http://localhost:8080/@scope/name
Basic authentication is used here
Bearer authentication
The token budget is 200000 tokens.
task-list-with-many-words-in-it
primary_key = 'user_id'
foreign_key=ForeignKey('users.id')
sort_keys=True, separators=(',', ':')
AKIA is how an id begins
sk-learn is a package
ec_index_of_the_first_element_in_table
トークンの数は 1234 です
パスワードを入力してください
パスワードは必須です
parse_tokens(line, keyword='x')
import { tokenize } from './tokenizer'
keyboard: qwerty-de-nodeadkeys
Authorization: Bearer $TOKEN
-----BEGIN CERTIFICATE-----
eyJ is how a JWT begins
monkeypatch.setenv('KEY', 'value')
KeyError: 'missing_setting_name'
auth=HTTPBasicAuth(user, password)
access_log /var/log/nginx/access.log
author: Jane Doe <jane@example.com>
secret_name: my-app-secret
tokens 1,234 in 2.3 s, cache_key app-main
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ
integrity sha512-Ab3dEf6hAb3dEf6hAb3dEf6hAb3dEf6hAb3dEf6hAb3dEf6hAb3dEf6hAb3dEf6hAb3dEf6hAb3dEf6h==
""".strip().splitlines()


def gitleaks() -> Iterator[Example]:
    """Yield the examples of gitleaks; which part of one is the secret is not known."""
    for line in EXAMPLES.read_text("utf-8").splitlines():
        entry = json.loads(line)
        yield Example(entry["from"], entry["text"], entry["text"] if entry["secret"] else "")


def score(name: str, examples: list[Example], mask: Callable[[str], str], *, misses: bool) -> None:
    """Print precision and recall of whole texts."""
    hit = missed = alarm = quiet = 0
    for example in examples:
        masked = mask(example.text)
        touched = masked != example.text
        if example.secret:
            good = touched and example.secret not in masked
            hit, missed = hit + good, missed + (not good)
        else:
            alarm, quiet = alarm + touched, quiet + (not touched)
        if misses and (touched if not example.secret else not good):
            word = "alarm" if not example.secret else "miss "
            print(f"    {word} {example.kind}: {example.text[:150]!r} -> {masked[:150]!r}")
    precision = hit / (hit + alarm) if hit + alarm else 1.0
    recall = hit / (hit + missed) if hit + missed else 1.0
    print(
        f"{name:22} secrets {hit + missed:5}  innocent {alarm + quiet:5}  "
        f"precision {precision:.3f}  recall {recall:.3f}  ({missed} missed, {alarm} false alarms)"
    )


def code(folder: Path, mask: Callable[[str], str], *, misses: bool) -> None:
    """Print how many lines of ordinary source code are changed."""
    lines = changed = size = 0
    for path in sorted(folder.rglob("*.py"))[:4000]:
        text = path.read_text("utf-8", "replace")
        size += len(text)
        for line in text.splitlines():
            lines += 1
            if (masked := mask(line)) != line:
                changed += 1
                if misses:
                    print(f"    {path.name}: {line.strip()[:140]!r} -> {masked.strip()[:140]!r}")
    share = changed / max(lines, 1) * 1e5
    print(
        f"{'code':22} {size / 1e6:.1f} MB, {lines} lines, {changed} masked ({share:.1f} of 100,000)"
    )


def speed(redactor: Any, name: str) -> None:
    """Print what one line of the log costs, for several kinds of lines."""
    source = Path(json.__file__).read_text("utf-8")
    event = {
        "id": "0" * 24,
        "at": "2026-01-01T00:00:00.000000+00:00",
        "trace_id": "8c35037b-2ac8-4678",
    }
    lines = {
        "short event": {**event, "type": "step", "data": {"name": "read_file", "path": "a.py"}},
        "file of 13 KB": {**event, "type": "tool_result", "data": {"text": source}},
        "with a secret": {**event, "data": {"text": "token ghp_" + "a1B2c3D4" * 5}},
        "text of 250 KB": {**event, "data": {"text": (source * 20)[:250_000]}},
    }
    for kind, value in lines.items():
        redactor.line(value)
        times = []
        for _ in range(7):
            turns = 400 if len(str(value)) < 2000 else 5
            start = time.process_time()
            for _ in range(turns):
                redactor.line(value)
            times.append((time.process_time() - start) / turns)
        print(f"{name:10} {kind:16} {min(times) * 1e6:10.1f} µs of CPU time")


def _at(commit: str) -> ModuleType:
    """The module of another commit; its imports are those of this one."""
    path = "src/evercontext/events/redaction.py"
    source = subprocess.run(
        ["git", "show", f"{commit}:{path}"], cwd=REPOSITORY, check=True, capture_output=True
    ).stdout
    with tempfile.NamedTemporaryFile(suffix=".py") as file:
        file.write(source)
        file.flush()
        spec = importlib.util.spec_from_file_location("redaction_before", file.name)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def main() -> None:
    """Print the tables."""
    from evercontext.events import redaction

    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    options.add_argument("--misses", action="store_true", help="print each miss and false alarm")
    options.add_argument("--code", type=Path, default=Path(sysconfig.get_path("purelib")))
    options.add_argument("--before", metavar="COMMIT")
    chosen = options.parse_args()
    versions = [("now", redaction), *([("before", _at(chosen.before))] if chosen.before else [])]
    for name, module in versions:
        redactor = module.Redactor([KNOWN])
        innocent = [Example("innocent", text) for text in INNOCENT]
        print(f"{name}:")
        now = chosen.misses and name == "now"
        score("formats", [*formats(), *innocent], redactor.masked, misses=now)
        score("gitleaks' examples", list(gitleaks()), redactor.masked, misses=now)
        code(chosen.code, redactor.masked, misses=now)
        speed(redactor, name)


if __name__ == "__main__":
    main()
