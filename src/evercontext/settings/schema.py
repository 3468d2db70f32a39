"""Define every setting: its name, variable, default and purpose."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evercontext.domain.principal import user_name
from evercontext.settings.hook_config import Hook, parse_hooks
from evercontext.settings.untrusted_settings import Project, Tighter, fewer, higher, lower, off, on

Parse = Callable[[Any], Any]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected text")
    return value


def _nonempty_text(value: Any) -> str:
    if not _text(value).strip():
        raise ValueError("expected a text that is not empty")
    return _text(value)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("expected a whole number")
    try:
        number = int(value)
    except ValueError:
        raise ValueError("expected a whole number") from None
    if number < 0:
        raise ValueError("expected a number of 0 or more")
    return number


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("expected a number")
    try:
        number = float(value)
    except ValueError:
        raise ValueError("expected a number") from None
    if not 0 <= number < float("inf"):
        raise ValueError("expected a number of 0 or more")
    return number


def _between(low: float, high: float, parse: Parse) -> Parse:
    def bounded(value: Any) -> Any:
        number = parse(value)
        if not low <= number <= high:
            bound = f"of {low:g} or more" if high == math.inf else f"between {low:g} and {high:g}"
            raise ValueError(f"expected a number {bound}")
        return number

    return bounded


def _switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in {"0", "false", "no", "off"}:
        return False
    raise ValueError("expected true or false")


def _any_text_is_on(value: Any) -> bool:
    # no-color.org: present and not empty, whatever the value.
    return value if isinstance(value, bool) else bool(str(value))


def _path(value: Any) -> Path:
    return Path(_text(value)).expanduser()


def _names(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list | tuple) else _text(value).replace(";", ",").split(",")
    return tuple(name for item in items if (name := _text(item).strip()))


def _folders(value: Any) -> tuple[Path, ...]:
    items = value if isinstance(value, list | tuple) else _text(value).split(os.pathsep)
    paths = tuple(_path(item) for item in items if item)
    if any(not path.is_absolute() or path == Path("/") for path in paths):
        raise ValueError("expected folders that begin with / or ~, and not / itself")
    return paths


def _commands(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list | tuple) else _text(value).splitlines()
    return tuple(line for item in items if (line := _text(item).strip()))


def _extensions(value: Any) -> tuple[str, ...]:
    return tuple(f".{name.lstrip('*').lstrip('.').lower()}" for name in _names(value))


def _one_of(*allowed: str) -> Parse:
    def parse(value: Any) -> str:
        if value not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return _text(value)

    return parse


def _setting(
    env: str | None,
    default: Any,
    help: str,
    parse: Parse = _text,
    *,
    project: Project | Tighter,
    secret: bool = False,
) -> Any:
    """Describe one setting; ``project``: what an ``evercontext.toml`` may do with it."""
    return field(
        default=default,
        metadata={
            "env": env,
            "help": help,
            "parse": parse,
            "secret": secret,
            "project": project,
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting of the product, with where each value came from."""

    # Places
    root: Path = _setting(
        "EC_APP_ROOT",
        Path(),
        "The project: nothing outside it is touched",
        _path,
        project=Project.NEVER,
    )
    home: Path = _setting(
        "EC_HOME", Path("~/.nebula"), "Where user-level files live", _path, project=Project.NEVER
    )
    traces_mb: int = _setting(
        "EC_TRACES_MB",
        1000,
        "Megabytes of traces and audit lines kept; 0: all",
        _integer,
        project=Project.NEVER,
    )
    traces_days: int = _setting(
        "EC_TRACES_DAYS",
        60,
        "Days of traces and audit lines kept, of those with some; 0: all",
        _integer,
        project=Project.NEVER,
    )
    database_url: str | None = _setting(
        "EC_DATABASE_URL",
        None,
        "PostgreSQL of a team. Unset: a file",
        secret=True,
        project=Project.NEVER,
    )

    user: str | None = _setting(
        "EC_USER",
        None,
        "Your name in memories, sessions. Unset: none",
        user_name,
        project=Project.NEVER,
    )

    login: str | None = _setting(
        "EC_LOGIN",
        None,
        "Your token on a shared database with users. Replaces EC_USER",
        secret=True,
        project=Project.NEVER,
    )

    # Policy
    allow_ext: tuple[str, ...] | None = _setting(
        "EC_ALLOW_EXT",
        None,
        "Allowed extensions, by comma or semicolon. Unset: .py .md .txt .json "
        ".yaml .yml at the gateway, source and text kinds in run and chat",
        _extensions,
        project=Project.TRUSTED,
    )
    max_bytes: int = _setting(
        "EC_MAX_BYTES", 524_288, "Largest file read or written, in bytes", _integer, project=fewer
    )
    unprotect: tuple[str, ...] = _setting(
        "EC_UNPROTECT",
        (),
        "Protected places to open up, such as .vscode",
        _names,
        project=Project.TRUSTED,
    )
    allow_hard_links: bool = _setting(
        "EC_ALLOW_HARD_LINKS",
        False,
        "Read files that have more than one name",
        _switch,
        project=off,
    )
    allow_wide_root: bool = _setting(
        "EC_ALLOW_WIDE_ROOT",
        False,
        "Accept / or the home directory as root",
        _switch,
        project=Project.NEVER,
    )

    # Models
    model_name: str | None = _setting(
        "EC_MODEL_NAME",
        None,
        "The model, as provider:model. Unset: chosen, see `model list`",
        project=Project.TRUSTED,
    )
    planner: str | None = _setting(
        "EC_PLANNER", None, "The planning model. Unset: no plan call", project=Project.TRUSTED
    )
    plan_cache: bool = _setting(
        "EC_PLAN_CACHE",
        True,
        "Same task, same tree: same plan, without asking again",
        _switch,
        project=Project.FREE,
    )
    parallel_tasks: int = _setting(
        "EC_PARALLEL_TASKS",
        3,
        "Tasks of a plan at once, where their files differ",
        _integer,
        project=fewer,
    )
    rollback_on_failure: bool = _setting(
        "EC_ROLLBACK_ON_FAILURE",
        False,
        "Take back what `run` changed if it does not end well",
        _switch,
        project=on,
    )
    reasoning_effort: str | None = _setting(
        "EC_REASONING_EFFORT",
        None,
        "How much a model that can reason thinks: `low`, `medium` or `high`",
        _one_of("low", "medium", "high"),
        project=Project.TRUSTED,
    )
    fallback_models: tuple[str, ...] = _setting(
        "EC_FALLBACK_MODELS",
        (),
        "Models tried in order when the first is unavailable",
        _names,
        project=Project.TRUSTED,
    )
    openai_api_key: str | None = _setting(
        "OPENAI_API_KEY", None, "Key for OpenAI", secret=True, project=Project.NEVER
    )
    openai_base_url: str | None = _setting(
        "OPENAI_BASE_URL", None, "Address of an OpenAI-compatible server", project=Project.NEVER
    )
    anthropic_api_key: str | None = _setting(
        "ANTHROPIC_API_KEY", None, "Key for Anthropic", secret=True, project=Project.NEVER
    )
    anthropic_base_url: str | None = _setting(
        "ANTHROPIC_BASE_URL",
        None,
        "Address of an Anthropic-compatible server",
        project=Project.NEVER,
    )
    ollama_endpoint: str = _setting(
        "EC_OLLAMA_ENDPOINT", "http://localhost:11434", "Address of Ollama", project=Project.NEVER
    )
    ollama_num_ctx: int = _setting(
        "EC_OLLAMA_NUM_CTX",
        16_384,
        "Context asked of Ollama (its default cuts silently)",
        _integer,
        project=fewer,
    )
    context_window: int | None = _setting(
        "EC_CONTEXT_WINDOW",
        None,
        "Overrides the known context window, in tokens",
        _integer,
        project=Project.TRUSTED,
    )
    model_timeout: float = _setting(
        "EC_MODEL_TIMEOUT",
        120.0,
        "Seconds without a word from a model before giving up",
        _number,
        project=fewer,
    )
    model_retries: int = _setting(
        "EC_MODEL_RETRIES",
        5,
        "Times that an overloaded or unreachable model is asked again, with growing waits",
        _integer,
        project=lower,
    )

    # Code index. From the user alone: a project must not send its readers' code elsewhere.
    embedder: str = _setting(
        "EC_EMBEDDER",
        "static",
        "Finds code by meaning: static, none, minilm, openai[:MODEL] or ollama[:MODEL]",
        project=Project.NEVER,
    )

    # Limits of one task
    max_turns: int = _setting(
        "EC_MAX_TURNS", 50, "Model calls in one task", _integer, project=fewer
    )
    timeout: float = _setting("EC_TIMEOUT", 1800.0, "Seconds for one task", _number, project=fewer)
    max_tokens: int = _setting(
        "EC_MAX_TOKENS", 0, "Tokens in one task; 0: no limit", _integer, project=fewer
    )
    max_budget_usd: float = _setting(
        "EC_MAX_BUDGET_USD", 0.0, "Money in one task, in USD; 0: no limit", _number, project=fewer
    )

    # Commands
    sandbox: str = _setting(
        "EC_SANDBOX",
        "auto",
        "auto, bubblewrap, landlock, or none (commands run without a sandbox)",
        _one_of("auto", "bubblewrap", "landlock", "none"),
        project=Project.NEVER,
    )
    sandbox_read: tuple[Path, ...] = _setting(
        "EC_SANDBOX_READ",
        (),
        "Folders outside the project that commands may read, separated by `:`",
        _folders,
        project=Project.TRUSTED,
    )
    allow_network: tuple[str, ...] = _setting(
        "EC_ALLOW_NETWORK",
        (),
        "Commands that may use the network, one on each line, such as `npm install *`",
        _commands,
        project=Project.TRUSTED,
    )
    allow_outside: tuple[str, ...] = _setting(
        "EC_ALLOW_OUTSIDE",
        (),
        "Commands that may run outside the sandbox, one on each line, such as `docker ps *`",
        _commands,
        project=Project.NEVER,
    )
    vendor_variables: tuple[str, ...] = _setting(
        "EC_VENDOR_VARIABLES",
        (),
        "More environment variables that the Codex and Gemini programs may see, by name",
        _names,
        project=Project.NEVER,
    )
    lint_cmd: str | None = _setting(
        "EC_LINT_CMD", None, "Command that lints", project=Project.TRUSTED
    )
    test_cmd: str | None = _setting(
        "EC_TEST_CMD", None, "Command that tests", project=Project.TRUSTED
    )
    format_cmd: str | None = _setting(
        "EC_FORMAT_CMD", None, "Command that formats", project=Project.TRUSTED
    )
    hooks: tuple[Hook, ...] = _setting(
        "EC_HOOKS",
        (),
        "Commands at events such as PreToolUse, see docs/how-to/hooks.md",
        parse_hooks,
        project=Project.TRUSTED,
    )
    auto_test: bool | None = _setting(
        "EC_AUTO_TEST",
        None,
        "Run the tests that are found after a change. Unset: in run, not in chat",
        _switch,
        project=Project.TRUSTED,
    )
    repair: bool | None = _setting(
        "EC_REPAIR",
        None,
        "Repair what makes checks red after a change. Unset: in run, not in chat",
        _switch,
        project=Project.TRUSTED,
    )
    repair_all: bool = _setting(
        "EC_REPAIR_ALL",
        False,
        "Repair, and judge by, what was red before a task, too",
        _switch,
        project=Project.TRUSTED,
    )
    repair_rounds: int = _setting(
        "EC_REPAIR_ROUNDS",
        3,
        "Times the model may try to repair red checks; 0: only what needs no model",
        _integer,
        project=lower,
    )
    allow_commands: bool = _setting(
        "EC_ALLOW_COMMANDS", False, "Offer run.* at REST and MCP", _switch, project=Project.NEVER
    )

    # Servers
    mcp_url: str | None = _setting(
        "EC_MCP_URL",
        None,
        "File calls go to this gateway. Unset: in-process",
        project=Project.NEVER,
    )
    rag_url: str | None = _setting(
        "EC_RAG_URL",
        None,
        "Search calls go to this server. Unset: in-process",
        project=Project.NEVER,
    )
    host: str = _setting(
        "EC_HOST", "127.0.0.1", "Address `serve` listens on", project=Project.NEVER
    )
    port: int = _setting(
        "EC_PORT", 8765, "Port of gateway, search and console", _integer, project=Project.NEVER
    )
    allowed_hosts: tuple[str, ...] = _setting(
        "EC_ALLOWED_HOSTS",
        (),
        "More names this server may be called by, as host:port",
        _names,
        project=Project.NEVER,
    )
    router_port: int = _setting(
        "EC_ROUTER_PORT", 3282, "Port of the tool router", _integer, project=Project.NEVER
    )
    router_open: bool = _setting(
        "EC_ROUTER_OPEN",
        False,
        "Let the router be used without a token",
        _switch,
        project=Project.NEVER,
    )
    token: str | None = _setting(
        "EC_TOKEN", None, "Token the gateway asks for", secret=True, project=Project.NEVER
    )

    # Evaluator
    evaluator_host: str = _setting(
        "MCP_HOST", "localhost", "Address of the evaluator", project=Project.NEVER
    )
    evaluator_port: int = _setting(
        "MCP_PORT", 23_100, "Port of the evaluator", _integer, project=Project.NEVER
    )
    target_score: float = _setting(
        "TARGET_SCORE", 8.0, "Score at which a document passes", _number, project=higher
    )
    max_iterations: int = _setting(
        "MAX_ITERATIONS", 5, "Rounds of improvement", _integer, project=fewer
    )
    codex_timeout: int = _setting(
        "CODEX_TIMEOUT", 120_000, "Milliseconds for one evaluation", _integer, project=fewer
    )
    codex_max_buffer: int = _setting(
        "CODEX_MAX_BUFFER", 1_048_576, "Bytes of evaluator output kept", _integer, project=fewer
    )
    codex_args: str = _setting(
        "CODEX_ARGS",
        "exec --full-auto",
        "Arguments of codex as a judge; `read-only` is a preset",
        project=Project.NEVER,
    )
    use_mock_evaluator: bool | None = _setting(
        "USE_MOCK_EVALUATOR",
        None,
        "true: local judge; false: codex. Unset: the best there is",
        _switch,
        project=Project.TRUSTED,
    )
    evaluation_prompt_path: Path | None = _setting(
        "EVALUATION_PROMPT_PATH", None, "Own evaluation template", _path, project=Project.NEVER
    )

    # Tool catalog
    catalog_url: str | None = _setting(
        "EC_CATALOG_URL", None, "Cloud tool search", project=Project.NEVER
    )
    catalog_model: str | None = _setting(
        "EC_CATALOG_MODEL", None, "Model that picks tools at /catalog/search", project=Project.NEVER
    )
    catalog_token: str | None = _setting(
        "EC_CATALOG_TOKEN", None, "Token for cloud tool search", secret=True, project=Project.NEVER
    )

    # Context and bridge
    system_prompt: str = _setting(
        "EC_SYSTEM_PROMPT",
        "You are Kana, the external translator for Resonant Engine.",
        "System prompt of the assembler and the bridge",
        _nonempty_text,
        project=Project.TRUSTED,
    )
    working_memory_limit: int = _setting(
        "EC_WORKING_MEMORY_LIMIT",
        10,
        "Messages that the assembler recalls (1-50)",
        _between(1, 50, _integer),
        project=fewer,
    )
    semantic_memory_limit: int = _setting(
        "EC_SEMANTIC_MEMORY_LIMIT",
        5,
        "Memories recalled for a task, a plan or a context (1-20)",
        _between(1, 20, _integer),
        project=fewer,
    )
    context_max_tokens: int = _setting(
        "EC_CONTEXT_MAX_TOKENS",
        100_000,
        "Largest context of the assembler (1000+); tasks have their model's window",
        _between(1000, math.inf, _integer),
        project=fewer,
    )
    token_safety_margin: float = _setting(
        "EC_TOKEN_SAFETY_MARGIN",
        0.8,
        "Share of it that is used (0.5-0.95)",
        _between(0.5, 0.95, _number),
        project=fewer,
    )
    bridge_model: str = _setting(
        "EC_BRIDGE_MODEL", "claude-sonnet-5-5", "Model of the bridge", project=Project.TRUSTED
    )
    bridge_max_tokens: int = _setting(
        "EC_BRIDGE_MAX_TOKENS", 4096, "Longest answer of the bridge", _integer, project=fewer
    )
    bridge_temperature: float = _setting(
        "EC_BRIDGE_TEMPERATURE", 0.5, "Its temperature", _number, project=Project.FREE
    )

    # Terminal
    no_color: bool = _setting(
        "NO_COLOR", False, "No colours", _any_text_is_on, project=Project.FREE
    )
    theme: str = _setting(
        "EC_THEME",
        "dark",
        "Colours of the terminal: `dark`, `light` or `none`",
        _one_of("dark", "light", "none"),
        project=Project.FREE,
    )
    debug: bool = _setting(
        "EC_DEBUG",
        False,
        "Show where an unexpected error came from",
        _any_text_is_on,
        project=Project.FREE,
    )

    origins: Mapping[str, str] = field(default_factory=dict, metadata={"internal": True})
    notices: tuple[str, ...] = field(default=(), metadata={"internal": True})
    """What the user should know of how these values came to be."""

    @property
    def traces(self) -> Path:
        """Where the event log lives."""
        return self.home / "traces"

    @property
    def database(self) -> Path:
        """The store of sessions, memories and all that outlives a process."""
        return self.home / "memory.db"

    def shown(self, name: str) -> str:
        """The value as a person may see it: secrets are only said to be set."""
        value = getattr(self, name)
        if value is None:
            return "(unset)"
        if is_secret(name):
            return "(set)"
        if isinstance(value, tuple):
            return ", ".join(map(str, value)) or "(none)"
        return str(value).lower() if isinstance(value, bool) else str(value)


def rows() -> list[dataclasses.Field[Any]]:
    """Every user-visible setting in order."""
    return [row for row in dataclasses.fields(Settings) if not row.metadata.get("internal")]


def is_secret(name: str) -> bool:
    """True for values that are never shown, logged or kept in a file."""
    return any(row.name == name and row.metadata["secret"] for row in rows())
