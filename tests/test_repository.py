"""The habits of this repository, held by tests instead of by reviewers."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent.parent
SOURCE = HERE / "src" / "evercontext"
TESTS = HERE / "tests"

LONG_FILES = {
    "src/evercontext/settings/schema.py": "one row for each setting",
    "src/evercontext/errors.py": "the one tree of errors, drawn and declared in one place",
}
LONG_FUNCTIONS: dict[str, str] = {}
TESTED_THROUGH = {
    "domain/search_replace_blocks.py": "agent/test_foreign_calls.py",
    "domain/token_markup.py": "domain/test_printed_calls.py",
    "files/absolute_paths.py": "cli/test_code.py",
    "process/name_lock.py": "server/console/test_work.py",
    "server/console/figures.py": "server/console/test_journeys.py",
    "server/console/live_runs.py": "server/console/test_work.py",
    "server/console/live_text.py": "server/console/test_work.py",
    "server/console/pictures.py": "server/console/test_work.py",
    "settings/environment.py": "cli/test_main.py",
    "settings/untrusted_settings.py": "settings/test_sources.py",
    "__main__.py": "cli/test_main.py",
    "access/router_projects.py": "cli/test_servers.py",
    "access/launching_programs.py": "access/test_approval_rules.py",
    "access/shell_parser.py": "access/test_approval_rules.py",
    "cli/users.py": "journeys/test_users.py",
    "cli/groups.py": "journeys/test_users.py",
    "storage/postgres_identity.py": "access/test_users.py",
    "access/access_tokens.py": "server/router/test_http.py",
    "agent/compaction.py": "agent/test_conversation.py",
    "agent/judgement.py": "agent/test_task.py",
    "agent/loop.py": "agent/test_task.py",
    "agent/repetition.py": "agent/test_task.py",
    "agent/plan_only.py": "agent/test_plan_sources.py",
    "agent/open_project.py": "app/test_application.py",
    "context/token_calibration.py": "app/test_application.py",
    "app/tools.py": "app/test_application.py",
    "settings/build_file_policy.py": "journeys/test_file_policy.py",
    "app/evaluation.py": "cli/test_evaluate.py",
    "app/models.py": "app/test_application.py",
    "app/catalog.py": "server/router/test_http.py",
    "models/setup.py": "cli/test_setup.py",
    "agent/task_undo.py": "server/console/test_runs.py",
    "events/trace_table.py": "app/test_application.py",
    "catalog/validation.py": "hostile/test_servers.py",
    "catalog/server_lifecycle.py": "hostile/test_servers.py",
    "catalog/tool_entry.py": "catalog/test_tool_search.py",
    "mcp/client/listing.py": "hostile/test_servers.py",
    "catalog/server_table.py": "cli/test_servers.py",
    "catalog/resources.py": "server/router/test_protocol.py",
    "mcp/client/stdio.py": "hostile/test_servers.py",
    "mcp/client/exchange.py": "hostile/test_servers.py",
    "cli/acp.py": "server/test_acp.py",
    "cli/chat/approval.py": "journeys/test_chat.py",
    "cli/chat/chat_session.py": "journeys/test_chat.py",
    "cli/chat/command.py": "journeys/test_chat.py",
    "cli/chat/keyboard.py": "journeys/test_chat.py",
    "cli/chat/info_commands.py": "journeys/test_chat.py",
    "cli/chat/session_commands.py": "journeys/test_chat.py",
    "cli/chat/print_mode.py": "cli/test_shorthand.py",
    "cli/chat/plain_keyboard.py": "journeys/test_chat.py",
    "cli/chat/view.py": "journeys/test_chat.py",
    "cli/chat/slash_commands.py": "journeys/test_chat.py",
    "cli/doctor.py": "cli/test_doctor.py",
    "cli/console.py": "server/console/test_application.py",
    "cli/git_hooks.py": "cli/test_search.py",
    "cli/index.py": "cli/test_search.py",
    "cli/interrupt.py": "cli/test_main.py",
    "cli/mcp.py": "server/test_mcp_tools.py",
    "cli/options.py": "journeys/test_bad_input.py",
    "cli/router_projects.py": "cli/test_servers.py",
    "cli/run.py": "journeys/test_run_tasks.py",
    "cli/router_tokens.py": "cli/test_servers.py",
    "cli/trace_lookup.py": "cli/test_trace.py",
    "cli/trace_tree.py": "cli/test_trace.py",
    "domain/backoff.py": "models/test_retry.py",
    "domain/check_verdicts.py": "journeys/test_verdicts.py",
    "evaluation/tools.py": "server/test_evaluation_server.py",
    "files/os_errors.py": "hostile/test_races_and_kills.py",
    "files/directory_listing.py": "hostile/test_files.py",
    "files/journal_records.py": "files/test_undo.py",
    "index/answer_json.py": "index/test_tools.py",
    "index/chunk_table.py": "index/test_indexer.py",
    "index/source_reader.py": "index/test_walker.py",
    "mcp/server/stdio.py": "server/router/test_stdio.py",
    "models/claude_client.py": "test_bridge.py",
    "models/key_check.py": "cli/test_setup.py",
    "models/json_reply.py": "models/test_json_protocol.py",
    "models/model_stream.py": "models/test_contract.py",
    "models/vendors/reply.py": "models/vendors/test_codex.py",
    "models/plugin_models.py": "test_plugins.py",
    "models/context_windows.py": "models/test_openai.py",
    "process/bubblewrap.py": "process/test_sandbox.py",
    "process/confinement.py": "process/test_sandbox.py",
    "process/landlock.py": "process/test_sandbox.py",
    "process/certificates.py": "models/test_openai.py",
    "process/shutdown.py": "hostile/test_many_clients.py",
    "process/supervisor.py": "process/test_sandbox.py",
    "process/mounts.py": "process/test_sandbox.py",
    "process/metadata_proxy.py": "process/test_sandbox.py",
    "process/seccomp.py": "process/test_sandbox.py",
    "process/system_paths.py": "process/test_sandbox.py",
    "process/process_tree.py": "process/test_run.py",
    "server/router/list_changes.py": "server/router/test_stdio.py",
    "server/router/results.py": "server/router/test_protocol.py",
    "server/responses.py": "server/test_rest.py",
    "server/request_guard.py": "hostile/test_gateway_http.py",
    "cli/client_files.py": "cli/test_servers.py",
    "server/http_connection.py": "hostile/test_gateway_http.py",
    "server/console/statistics.py": "server/console/test_pages.py",
    "server/console/code_search.py": "server/console/test_pages.py",
    "server/console/memories.py": "server/console/test_pages.py",
    "server/console/sessions.py": "server/console/test_pages.py",
    "server/console/tool_switches.py": "server/console/test_pages.py",
    "server/api_page.py": "server/test_rest.py",
    "server/exposed_tools.py": "server/test_rest.py",
    "server/request_metrics.py": "server/test_rest.py",
    "server/router/mcp_methods.py": "server/router/test_protocol.py",
    "server/lazy_app.py": "server/test_rest.py",
    "process/stdin.py": "server/router/test_stdio.py",
    "server/disconnect_watcher.py": "server/router/test_protocol.py",
    "settings/schema.py": "settings/test_sources.py",
    "storage/sqlite_connection.py": "storage/test_sqlite.py",
    "tools/audit_line.py": "journeys/test_audit_log.py",
    "tools/diff.py": "tools/test_toolbox.py",
    "tools/argument_check.py": "tools/test_toolbox.py",
    "tools/truncate.py": "tools/test_toolbox.py",
    "workspace/edit_conflict.py": "workspace/test_file_tools.py",
    "workspace/nearest_lines.py": "workspace/test_search_and_replace.py",
    "workspace/compile_check.py": "workspace/test_interpreters.py",
    "workspace/read_tools.py": "workspace/test_file_tools.py",
    "workspace/parameter_schema.py": "workspace/test_file_tools.py",
    "workspace/write_tools.py": "workspace/test_file_tools.py",
}
"""Parts that no test names, because their whole is tested: where that is done."""
INVENTED_KEYS = {
    "benchmarks/data/secret_examples.jsonl": "examples of a public set of rules",
    "tests/events/test_redaction.py": "keys made up to see them redacted",
}
SQL_FROM_PARTS = {
    "storage/database_copy.py": "table and column names of our own list; values are parameters",
    "storage/database_status.py": "table names of our own list",
    "storage/memory_candidates.py": "numbers of scopes and the quoted name of our encoder",
    "storage/postgres_memory_search.py": "numbers of scopes and the quoted name of our encoder",
    "storage/sqlite_recovery.py": "table and column names of our own schema, quoted",
    "storage/sqlite_connection.py": "one of two constants in a PRAGMA",
    "memory/outbox_delivery.py": "conditions of fixed words; values are parameters",
    "memory/undo_and_rename.py": "column lists of fixed words; values are parameters",
    "memory/memory_table.py": "the next number of a change, in fixed words",
    "memory/messages.py": "conditions chosen among fixed words; their values are parameters",
    "memory/recall.py": "column lists and conditions of fixed words; values are parameters",
    "memory/memory_store.py": "column lists and conditions of fixed words; values are parameters",
}
OPENERS = {
    "our own data, inside the package": """
        agent/system_prompt.py agent/compaction.py agent/repair/repair_prompt.py catalog/synonyms.py
        cli/chat/slash_commands.py context/token_estimate.py domain/translation.py
        events/secret_rules.py
        evaluation/writer.py index/languages.py index/ranking.py models/embedders/wordpiece.py
        retrieval/japanese_dictionary.py server/console/assets.py storage/migrate.py
        storage/postgres_memory_search.py storage/postgres_identity.py
    """,
    "our own files, in the user's home folder": """
        catalog/server_log.py evaluation/document_versions.py
        events/log_index.py events/log.py events/log_reader.py models/embedded/openmp.py
        models/embedded/registry.py models/embedded/weights.py models/vendors/private_home.py
        process/name_lock.py storage/sqlite_connection.py
        storage/outbox_file.py storage/sqlite_recovery.py storage/sqlite.py
        workspace/command_marks.py
    """,
    "the record of how we were installed": "settings/installation.py",
    "directories only, by descriptor; and a list in the quarantine": "workspace/planted_files.py",
    "directories only, of a command's own temporary directory": "process/temporary_directory.py",
    "our own index folder, which index/location.py has looked at": """
        index/remote_ingest.py index/worker_pool.py index/lease.py index/corpus_snapshot.py
    """,
    "a path that the user typed or set for this; a pipe is welcome": """
        cli/chat/session_commands.py cli/evaluate.py cli/plan_file.py cli/sessions.py cli/tools.py
        evaluation/judge_prompt.py models/scripted.py
    """,
    "the terminal, and nothing in its place": "cli/run_approval.py cli/failure.py cli/main.py",
    "the kernel's own files, and those of the supervisor": """
        process/child.py process/confinement.py process/supervisor.py process/listening_ports.py
        process/metadata_proxy.py process/mounts.py process/process_identity.py
        process/process_tree.py server/peer_user.py
    """,
    "evercontext.toml, bounded in the same way without loading a policy": """
        settings/sources.py
    """,
    "runs in the sandbox, as a program of its own": "workspace/compile_check.py",
}
"""Who opens files without the package `files`, and what they are. None is in the user's tree."""
VAGUE_NAMES = re.compile(r"(?:^|_)(?:utils?|helpers?|common|core|misc|managers?)\.py$")
MACHINE_PATHS = re.compile(r"(?<![\w.~/-])/(?:work|root|Users|mnt/data)/[\w.-]+")
SECRETS = re.compile(
    r"\bsk-(?:proj-|ant-)?[A-Za-z0-9_-]{32,}|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}\b"
    r"|\bxox[abp]-[0-9]{10,}|-----BEGIN (?:RSA |EC |OPENSSH )?PRIVATE KEY-----\n[A-Za-z0-9+/]{40}"
)


@cache
def files() -> tuple[Path, ...]:
    """Every text file that git keeps or would keep."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=HERE,
        capture_output=True,
        check=True,
    ).stdout.decode()
    paths = (HERE / name for name in listed.split("\0") if name)
    return tuple(sorted(path for path in paths if path.is_file() and not path.is_symlink()))


def text_files() -> Iterator[tuple[str, str]]:
    for path in files():
        try:
            yield path.relative_to(HERE).as_posix(), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def python_files(*under: Path) -> list[Path]:
    return [p for p in files() if p.suffix == ".py" and any(u in p.parents for u in under)]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def relative(path: Path) -> str:
    return path.relative_to(HERE).as_posix()


def test_no_file_names_the_machine_it_was_written_on() -> None:
    found = [f"{name}: {hit}" for name, text in text_files() for hit in MACHINE_PATHS.findall(text)]
    assert found == []


@pytest.mark.case(135)
def test_no_file_holds_a_secret() -> None:
    found = [name for name, text in text_files() if SECRETS.search(text)]
    assert [name for name in found if name not in INVENTED_KEYS] == []


def test_files_stay_short_enough_to_read() -> None:
    long = {
        relative(path): lines
        for path in python_files(SOURCE)
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 500
    }
    assert {name: lines for name, lines in long.items() if name not in LONG_FILES} == {}
    assert set(LONG_FILES) <= set(long), "an exemption that is no longer needed"


def test_functions_stay_short_enough_to_read() -> None:
    long = {
        f"{relative(path)}:{node.name}": length
        for path in python_files(SOURCE)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno
        and (length := node.end_lineno - node.lineno + 1) > 80
    }
    assert {name: lines for name, lines in long.items() if name not in LONG_FUNCTIONS} == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [relative(p) for p in python_files(SOURCE) if VAGUE_NAMES.search(p.name)] == []


def test_no_program_hides_a_module_of_python() -> None:
    """What runs from a folder imports from it first: a `secrets.py` there breaks its neighbours."""
    programs = [*(HERE / "benchmarks").glob("*.py"), *(HERE / "scripts").glob("*.py")]
    assert [p.name for p in programs if p.stem in sys.stdlib_module_names] == []


def test_every_module_is_tested() -> None:
    """By a test of its name, by one that imports it, or through the whole it is part of."""
    named = {module for path in python_files(TESTS) for module in _imports(tree(path))}
    untested = [
        name
        for path in python_files(SOURCE)
        if path.name != "__init__.py"
        and _is_kept(path)
        and (name := path.relative_to(SOURCE).as_posix()) not in TESTED_THROUGH
        and not (TESTS / path.relative_to(SOURCE).parent / f"test_{path.name}").is_file()
        and f"evercontext.{name.removesuffix('.py').replace('/', '.')}" not in named
    ]
    assert untested == []


def test_parts_tested_through_others_and_their_tests_exist() -> None:
    assert [name for name in TESTED_THROUGH if not (SOURCE / name).is_file()] == []
    assert [name for name in TESTED_THROUGH.values() if not (TESTS / name).is_file()] == []


def _imports(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_kept(path: Path) -> bool:
    """Whether git has it; a module that is still being written may wait for its test."""
    return relative(path) in _kept()


@cache
def _kept() -> frozenset[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=HERE, capture_output=True, check=True)
    return frozenset(listed.stdout.decode().split("\0"))


def test_everything_imported_is_declared() -> None:
    """A fresh clone has only what pyproject.toml names; this machine may have more."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = _distributions(project["dependencies"] + extras["embedded"] + extras["postgres"])
    assert _undeclared(SOURCE, needed) == {}
    assert _undeclared(TESTS, needed | _distributions(extras["dev"])) == {}


def _distributions(requirements: list[str]) -> set[str]:
    names = (re.match(r"[\w.-]+", requirement) for requirement in requirements)
    return {_normal(name.group()) for name in names if name}


def _undeclared(room: Path, declared: set[str]) -> dict[str, str]:
    found = {}
    for path in python_files(room):
        for module in _imports(tree(path)):
            top = module.partition(".")[0]
            if top in {"evercontext", "tests", "training"} or top in sys.stdlib_module_names:
                continue
            if not declared & {_normal(name) for name in _providers().get(top, [top])}:
                found[top] = relative(path)
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def _providers() -> dict[str, list[str]]:
    return {module: list(names) for module, names in packages_distributions().items()}


def test_tests_use_real_parts() -> None:
    found = [
        relative(path)
        for path in python_files(TESTS, SOURCE)
        for node in ast.walk(tree(path))
        if (isinstance(node, ast.Import) and any(a.name.startswith("unittest") for a in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("unittest"))
    ]
    assert found == []


@pytest.mark.case(115)
def test_no_sql_is_built_from_values() -> None:
    found = sorted({relative(p) for p in python_files(SOURCE) if list(_built_sql(tree(p)))})
    allowed = {f"src/evercontext/{name}" for name in SQL_FROM_PARTS}
    assert [name for name in found if name not in allowed] == []


_SQL = re.compile(
    r"^\s*(?:SELECT\s.+\sFROM|INSERT\s+(?:OR\s+\w+\s+)?INTO|REPLACE\s+INTO|UPDATE\s+\S+\s+SET"
    r"|DELETE\s+FROM|(?:CREATE|DROP)\s+(?:TABLE|INDEX|VIEW|TRIGGER|VIRTUAL|UNIQUE|TEMP)|ALTER\s+TABLE|PRAGMA|WITH\s+\w+\s+AS)\b",
    re.IGNORECASE | re.DOTALL,
)


def _built_sql(module: ast.Module) -> Iterator[int]:
    """Lines where a statement is put together by f-string, ``%``, ``+`` or ``format``."""
    for node in ast.walk(module):
        if isinstance(node, ast.JoinedStr) and any(_is_value(part) for part in node.values):
            text = "".join(_literal(part) or "x" for part in node.values)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.Add):
            text = _literal(node.left)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "format"
        ):
            text = _literal(node.func.value)
        else:
            continue
        if _SQL.match(text):
            yield node.lineno


def _is_value(part: ast.expr) -> bool:
    """True for anything put into a text, except a row of question marks called ``marks``."""
    if not isinstance(part, ast.FormattedValue):
        return False
    return not (isinstance(part.value, ast.Name) and part.value.id == "marks")


def _literal(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@pytest.mark.case(115)
@pytest.mark.parametrize(
    "line",
    [
        'run(f"SELECT * FROM memories WHERE id = {x}")',
        'run("INSERT INTO memories VALUES (%s)" % x)',
        'run("DELETE FROM memories WHERE id = " + x)',
        'run("UPDATE memories SET a = {}".format(x))',
        'run(f"drop table {x}")',
    ],
)
def test_built_sql_is_recognised(line: str) -> None:
    assert list(_built_sql(ast.parse(line))) == [1]


@pytest.mark.parametrize(
    "line",
    [
        'run("SELECT a FROM t WHERE id = ?", (x,))',
        'run(f"SELECT a FROM t WHERE id IN ({marks})", ids)',
        'f"Create {x} again"',
    ],
)
def test_plain_sql_is_not_taken_for_built_sql(line: str) -> None:
    assert list(_built_sql(ast.parse(line))) == []


def test_file_policies_are_made_in_one_place() -> None:
    """V15: a place that makes its own forgets a setting, and then two parts disagree."""
    makers = {"agent_policy", "gateway_policy"}
    making = {
        path.relative_to(SOURCE).as_posix()
        for path in python_files(SOURCE)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Name | ast.alias)
        and (node.id if isinstance(node, ast.Name) else node.name) in makers
    }
    assert making == {"settings/build_file_policy.py", "files/policy.py"}


def test_only_the_package_files_opens_the_users_tree() -> None:
    """S6, X9: bounded and never waiting, so `files.small_files` or a `Tree` reads it."""
    known = {name for names in OPENERS.values() for name in names.split()}
    opening = {
        path.relative_to(SOURCE).as_posix(): lines
        for path in python_files(SOURCE)
        if SOURCE / "files" not in path.parents and (lines := list(_opens(tree(path))))
    }
    assert {name: lines for name, lines in opening.items() if name not in known} == {}
    assert known - opening.keys() == set()


def _opens(module: ast.Module) -> Iterator[int]:
    """Yield the lines that open a file, by whichever name."""
    for call in (node for node in ast.walk(module) if isinstance(node, ast.Call)):
        match call.func:
            case ast.Name(id="open") | ast.Attribute(attr="read_text" | "read_bytes"):
                yield call.lineno
            case ast.Attribute(value=ast.Name(id="os" | "io"), attr="open"):
                yield call.lineno
            case ast.Attribute(attr="open") if _has_mode(call):
                yield call.lineno


def _has_mode(call: ast.Call) -> bool:
    """Tell a file's `open` from that of a store or a project."""
    if any(keyword.arg in ("encoding", "mode") for keyword in call.keywords):
        return True
    first = call.args[0] if call.args else None
    mode = first.value if isinstance(first, ast.Constant) else None
    return isinstance(mode, str) and re.fullmatch(r"[rwxabt+]{1,3}", mode) is not None


@pytest.mark.parametrize(
    "line",
    [
        "open(path)",
        "path.read_text('utf-8')",
        "(root / name).read_bytes()",
        "os.open(path, os.O_RDONLY)",
        "path.open('rb')",
        "path.open(encoding='utf-8')",
    ],
)
def test_an_opened_file_is_recognised(line: str) -> None:
    assert list(_opens(ast.parse(line))) == [1]


@pytest.mark.parametrize("line", ["Root.open(path)", "await Store.open(url)", "editor.open()"])
def test_other_things_that_open_are_not_taken_for_files(line: str) -> None:
    assert list(_opens(ast.parse(line))) == []
