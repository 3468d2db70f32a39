"""What several packages need is defined once, below them all: a second definition fails here.

Each rule reads the source for the pattern of a twin. A table names the places that only look like
one, with the reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

import pytest

from evercontext.files.generated_directories import GENERATED
from tests.test_repository import SOURCE, python_files, tree

Find = Callable[[ast.Module], Iterator[int]]
_KEPT_TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE)\s+kept\b", re.IGNORECASE)
_READS_FILE = re.compile(r"_?(read|small)")
_KANA, _KANJI = "あ", "漢"


def redactors(module: ast.Module) -> Iterator[int]:
    """Yield where a redactor is built instead of asked for with the settings."""
    for call in _calls(module):
        if _name(call.func) == "Redactor":
            yield call.lineno


def json_readers(module: ast.Module) -> Iterator[int]:
    """Yield where JSON is read from a file."""
    for call in _calls(module):
        full = ast.unparse(call.func)
        inner = {_name(inside.func) for inside in _calls(call) if inside is not call}
        if full == "json.load" or (full == "json.loads" and any(map(_READS_FILE.match, inner))):
            yield call.lineno


def atomic_writers(module: ast.Module) -> Iterator[int]:
    """Yield where a file is renamed, which is how one is replaced; `str.replace` has two values."""
    for call in _calls(module):
        full = ast.unparse(call.func)
        moves = isinstance(call.func, ast.Attribute) and call.func.attr in ("replace", "rename")
        by_path = moves and len(call.args) == 1 and not call.keywords
        if by_path or full in ("os.replace", "os.rename", "tempfile.mkstemp"):
            yield call.lineno


def japanese_detectors(module: ast.Module) -> Iterator[int]:
    """Yield where characters of Japanese are told from others."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and re.match(r"_?(is|has)_(japanese|kana)", node.name):
            yield node.lineno
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for characters in re.findall(r"\[[^\[\]]+\]", node.value):
                if _is_class_of_japanese(characters):
                    yield node.lineno


def line_escapes(module: ast.Module) -> Iterator[int]:
    """Yield where characters that do not print are written out."""
    for call in _calls(module):
        values = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
        if _name(call.func) == "encode" and "unicode_escape" in values:
            yield call.lineno


def skipped_directories(module: ast.Module) -> Iterator[int]:
    """Yield where three or more generated directories are listed."""
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = set(re.split(r"[\s,|()]+", node.value))
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            names = {item.value for item in node.elts if isinstance(item, ast.Constant)}
        else:
            continue
        if len(names & GENERATED) > 2:
            yield node.lineno


def key_value_statements(module: ast.Module) -> Iterator[int]:
    """Yield statements about the table of keys and values."""
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and _KEPT_TABLE.search(str(node.value)):
            yield node.lineno


def workspace_kinds(module: ast.Module) -> Iterator[int]:
    """Yield where code asks which kind of workspace it has, not what the workspace can do."""
    for call in _calls(module):
        if _name(call.func) == "isinstance" and "Workspace" in ast.unparse(call.args[-1]):
            yield call.lineno


def request_recalls(module: ast.Module) -> Iterator[int]:
    """Yield where memories are recalled for a request that a model waits for."""
    for call in _calls(module):
        if any(keyword.arg == "hurried" for keyword in call.keywords):
            yield call.lineno


def windows(module: ast.Module) -> Iterator[int]:
    """Yield where the window of a request is made."""
    for call in _calls(module):
        if _name(call.func) == "Window":
            yield call.lineno


def latency_watches(module: ast.Module) -> Iterator[int]:
    """Yield where the slowness of assemblies is watched."""
    for call in _calls(module):
        values = [ast.unparse(keyword.value) for keyword in call.keywords]
        if _name(call.func) == "LatencyWatch" or "LatencyWatch" in values:
            yield call.lineno


RULES: dict[str, tuple[Find, dict[str, str]]] = {
    "redactor": (
        redactors,
        {
            "events/redaction.py": "the one place",
            "events/log.py": "a log without settings masks the shapes of secrets alone",
            "index/source_reader.py": "an index without settings masks the shapes of secrets alone",
            "catalog/server_lifecycle.py": "secrets of one server's own environment",
        },
    ),
    "JSON file": (
        json_readers,
        {
            "files/json_file.py": "the one place",
            "cli/tools.py": "a file that the user names; a pipe is welcome",
            "domain/translation.py": "data of this package, and below `files` in the layers",
            "events/log_index.py": "lines of the log",
            "process/listening_ports.py": "beside `files` in the layers, not above it",
            "workspace/command_marks.py": "tells a mark that is gone from one that is damaged",
        },
    ),
    "atomic write": (
        atomic_writers,
        {
            "files/atomic_write.py": "the one place",
            "catalog/server_log.py": "rotates the log of a server",
            "files/journal_recovery.py": "closes a segment of the journal by its name",
            "files/journal_segments.py": "closes a segment of the journal by its name",
            "files/links_and_directories.py": "moves by descriptor, below the root",
            "files/system_calls.py": "moves by descriptor, below the root",
            "index/corpus_snapshot.py": "arrays, written one after another",
            "index/git_hook.py": "moves a hook of the user's aside and back",
            "models/embedded/weights.py": "gigabytes, verified while they are copied",
            "process/listening_ports.py": "beside `files` in the layers, not above it",
            "storage/sqlite_connection.py": "SQLite copies the database",
            "storage/sqlite_recovery.py": "moves a damaged database aside",
            "workspace/command_marks.py": "moves a damaged mark aside",
            "workspace/planted_files.py": "moves by descriptor, into the quarantine",
        },
    ),
    "Japanese": (
        japanese_detectors,
        {
            "domain/japanese.py": "the one place",
        },
    ),
    "escaped line": (
        line_escapes,
        {
            "domain/visible_text.py": "the one place",
            "files/path_names.py": "names of files, in which a wide space stays a space",
        },
    ),
    "skipped directories": (
        skipped_directories,
        {
            "files/generated_directories.py": "the one place",
            "files/protected_paths.py": "patterns of what a person is asked about",
            "workspace/compile_check.py": "run by the project's Python, which cannot import us",
        },
    ),
    "key-value table": (key_value_statements, {"storage/key_value.py": "the one place"}),
    "kinds of workspace": (workspace_kinds, {}),
    "recall for a request": (request_recalls, {"context/engine.py": "the one place"}),
    "window": (
        windows,
        {
            "context/token_calibration.py": "of a model, for the agent and the planner",
            "context/context_request.py": "of the settings, for the library and the bridge",
            "cli/chat/session_picker.py": "prompt_toolkit's, a part of the screen",
        },
    ),
    "latency watch": (latency_watches, {"context/engine.py": "the one place"}),
}


@pytest.mark.parametrize("concept", RULES)
def test_each_concept_is_defined_once(concept: str) -> None:
    find, allowed = RULES[concept]
    places = {
        path.relative_to(SOURCE).as_posix(): lines
        for path in python_files(SOURCE)
        if (lines := list(find(tree(path))))
    }
    assert {name: lines for name, lines in places.items() if name not in allowed} == {}
    assert allowed.keys() - places.keys() == set(), "an exemption that is no longer needed"


@pytest.mark.parametrize(
    ("concept", "twin"),
    [
        ("redactor", "Redactor(['secret'])"),
        ("redactor", "redaction.Redactor()"),
        ("JSON file", "json.loads(path.read_text('utf-8') or '{}')"),
        ("JSON file", "json.load(file)"),
        ("JSON file", "json.loads(small_bytes(folder, 'x.json'))"),
        ("atomic write", "part.replace(path)"),
        ("atomic write", "os.replace(part, path)"),
        ("atomic write", "tempfile.mkstemp(dir=folder)"),
        ("Japanese", "def is_japanese(text): ..."),
        ("Japanese", "re.compile('[\\u3040-\\u30ff\\u4e00-\\u9fff]')"),
        ("Japanese", "re.compile(r'[\\u3040-\\u30ff\\u4e00-\\u9fff]')"),
        ("escaped line", "c.encode('unicode_escape').decode()"),
        ("skipped directories", "SKIP = {'node_modules', '.venv', '.tox', 'dist'}"),
        ("skipped directories", "SKIP = 'node_modules .venv .tox dist'.split()"),
        ("key-value table", "store.execute('INSERT INTO kept (key, value) VALUES (?, ?)')"),
        ("kinds of workspace", "isinstance(app.workspace, LocalWorkspace)"),
        ("recall for a request", "RetrievalOptions(5, user, project, hurried=True)"),
        ("window", "Window(100_000, 8_192, estimator)"),
        ("latency watch", "LatencyWatch()"),
    ],
)
def test_a_twin_is_recognised(concept: str, twin: str) -> None:
    assert list(RULES[concept][0](ast.parse(twin))) != []


@pytest.mark.parametrize(
    ("concept", "line"),
    [
        ("JSON file", "json.loads(row['value'])"),
        ("atomic write", "text.replace('a', 'b')"),
        ("atomic write", "replace(settings, root=root)"),
        ("Japanese", r"re.compile(r'[\w.]+|[^a-z]')"),
        ("skipped directories", "('.git', 'node_modules')"),
        ("kinds of workspace", "isinstance(problem, OSError)"),
    ],
)
def test_what_only_looks_alike_is_not_taken_for_a_twin(concept: str, line: str) -> None:
    assert list(RULES[concept][0](ast.parse(line))) == []


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (child for child in ast.walk(node) if isinstance(child, ast.Call))


def _name(function: ast.expr) -> str:
    return ast.unparse(function).rpartition(".")[2]


def _is_class_of_japanese(characters: str) -> bool:
    """Return whether a class of a pattern has kana and kanji, and is not one of all letters."""
    try:
        pattern = re.compile(characters)
    except re.error:
        return False
    if characters.startswith("[^"):
        return False
    return bool(pattern.match(_KANA) and pattern.match(_KANJI) and not pattern.match("a"))
