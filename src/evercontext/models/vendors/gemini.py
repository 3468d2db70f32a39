"""Run Gemini CLI: arguments by version, private configuration, event stream."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evercontext.domain.model import Usage
from evercontext.models.vendors.private_home import PrivateHome, read_small
from evercontext.models.vendors.program import Facts, Probes
from evercontext.models.vendors.reply import VendorReply, events, number, table

_POLICY = '[[rule]]\ntoolName = "*"\ndecision = "deny"\npriority = 999\n'
"""No tool is allowed, so none is offered to the model."""
_SYSTEM = "Answer what you are asked with text. There are no tools here.\n"
_PROMPT = "Answer what is asked above, with text only."
_TEXT_EVENTS = ("init", "message", "thought", "error", "result")
_STATUS = re.compile(r'\b(?:code|status)"?: (\d{3})\b|"code":(\d{3})\b')
_QUOTA = re.compile(r"quota|rate limit|RESOURCE_EXHAUSTED", re.IGNORECASE)
_KEY = re.compile(r"API key not valid|API_KEY_INVALID|invalid_grant", re.IGNORECASE)
_LINE = re.compile(r"^\s*(?:export\s+)?([A-Z_][A-Z0-9_]*)\s*=\s*(.*?)\s*$", re.MULTILINE)
_NO_LOGIN, _BAD_INPUT, _TOO_MANY_TURNS, _UNTRUSTED = 41, 42, 53, 55


@dataclass(frozen=True, slots=True)
class Gemini:
    """``gemini`` as a text model."""

    model: str = ""
    name: str = "gemini-cli"
    program: str = "gemini"
    install: str = "npm install -g @google/gemini-cli"
    login: str = "Run gemini once and log in, or set GEMINI_API_KEY"
    oldest: tuple[int, int, int] = (0, 33, 0)
    probes: Probes = Probes(("--help",))
    variables: tuple[str, ...] = (
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_PROJECT_ID",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_CLOUD_QUOTA_PROJECT",
        "GOOGLE_CLOUD_ACCESS_TOKEN",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_GENAI_USE_GCA",
        "GOOGLE_GENAI_API_VERSION",
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_VERTEX_BASE_URL",
        "GEMINI_API_KEY_AUTH_MECHANISM",
        "GEMINI_CLI_CUSTOM_HEADERS",
        "GEMINI_CLI_USE_COMPUTE_ADC",
        "GEMINI_DEFAULT_AUTH_TYPE",
        "GEMINI_FORCE_ENCRYPTED_FILE_STORAGE",
        "GEMINI_FORCE_FILE_STORAGE",
        "GEMINI_MODEL",
        "GEMINI_CLI_HOME",
    )
    files: tuple[str, ...] = ("GOOGLE_APPLICATION_CREDENTIALS",)
    copied: tuple[str, ...] = ("google_accounts.json", "installation_id", "gemini-credentials.json")
    returned: tuple[str, ...] = ("oauth_creds.json",)

    def user_folder(self, environment: Mapping[str, str]) -> Path:
        """Return the folder in which the user's own Gemini CLI keeps its files."""
        own = environment.get("GEMINI_CLI_HOME") or environment.get("HOME", "/")
        return Path(own) / ".gemini"

    def configured_variables(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return none: the settings of Gemini CLI name no variable of its login."""
        return ()

    def misfit(self, facts: Facts) -> str | None:
        """Return why this version cannot be used, None if it can."""
        if not facts.version:
            return "it does not name its version"
        missing = {"--policy", "--output-format"} - set(facts.options)
        if facts.at_least(*self.oldest) and not missing:
            return None
        return "it is too old, 0.33.0 is the oldest that fits"

    def prepare(
        self, home: PrivateHome, user: Path, environment: Mapping[str, str]
    ) -> dict[str, str]:
        """Write the private configuration; return the variables of the child that change."""
        settings = json.dumps(private_settings(_settings(user)))
        (home.settings / "settings.json").write_text(settings, encoding="utf-8")
        (home.root / "policy.toml").write_text(_POLICY, encoding="utf-8")
        (home.root / "system.md").write_text(_SYSTEM, encoding="utf-8")
        # Settings of the machine can name servers, hooks and tools too.
        nowhere = str(home.root / "none.json")
        return {
            **self._dotenv(user, environment),
            "HOME": str(home.root),
            "GEMINI_CLI_HOME": str(home.root),
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH": nowhere,
            "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": nowhere,
            "GEMINI_SYSTEM_MD": str(home.root / "system.md"),
            "GEMINI_CLI_NO_RELAUNCH": "true",
            "NO_BROWSER": "true",
        }

    def _dotenv(self, user: Path, environment: Mapping[str, str]) -> dict[str, str]:
        """Return what the user's ~/.gemini/.env adds to the login, and nothing else of it."""
        text = (read_small(user / ".env") or b"").decode("utf-8", "replace")
        allowed = {*self.variables, *self.files} - set(environment)
        pairs = _LINE.findall(text)
        return {name: value.strip("\"'") for name, value in pairs if name in allowed}

    def arguments(self, facts: Facts, home: PrivateHome, schema: Path | None) -> list[str]:
        """Return the arguments that this version understands."""
        words = ["--output-format", "stream-json", "--policy", str(home.root / "policy.toml")]
        words += ["--approval-mode", "default"]
        # The folder is ours and empty; without trust every version from 0.39 on refuses to run.
        words += ["--skip-trust"] if "--skip-trust" in facts.options else []
        words += ["--model", self.model] if self.model else []
        return [*words, "--prompt", _PROMPT]

    def stdin(self, prompt: str) -> str:
        """Return the prompt as the program takes it: a leading slash would be a command to it."""
        return f"Request:\n{prompt}" if prompt.lstrip().startswith(("/", "?")) else prompt

    def action(self, event: Mapping[str, Any]) -> str | None:
        """Return what the program does besides writing, None for text, reasoning and usage."""
        kind = str(event.get("type"))
        if kind in _TEXT_EVENTS:
            stats = table(event.get("stats"))
            return "a tool call" if number(stats.get("tool_calls")) else None
        return str(event.get("tool_name") or kind)

    def read(self, output: str, error_output: str, exit_code: int, facts: Facts) -> VendorReply:
        """Fold the events."""
        pieces: list[str] = []
        errors: list[str] = []
        done: Usage | None = None
        for event in events(output):
            match event.get("type"), event.get("role"), event.get("status"):
                case "message", "assistant", _:
                    pieces.append(str(event.get("content") or ""))
                case "result", _, "success":
                    done = _usage(table(event.get("stats")))
                case "result", _, _:
                    errors.append(_message(event))
                case "error", _, _:
                    errors.insert(0, str(event.get("message") or ""))
        if done is not None and exit_code == 0 and pieces:
            return VendorReply("".join(pieces), usage=done)
        return _failure(
            errors[-1] if errors else _last_error(error_output), error_output, exit_code
        )


def private_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the login and model of the user's, and none of its tools or servers."""
    auth = table(table(settings.get("security")).get("auth"))
    kind = auth.get("selectedType") or settings.get("selectedAuthType")
    model = table(settings.get("model")).get("name") if _is_table(settings.get("model")) else None
    general = {"maxAttempts": 2, "retryFetchErrors": False, "enableAutoUpdate": False}
    return {
        "general": {**general, "disableAutoUpdate": True, "checkpointing": {"enabled": False}},
        "security": {"auth": {"selectedType": kind}} if isinstance(kind, str) else {},
        "model": {"name": model} if isinstance(model, str) else {},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "mcpServers": {},
        "skills": {"enabled": False},
        "hooksConfig": {"enabled": False},
        "experimental": {"enableAgents": False},
    }


def _settings(folder: Path) -> dict[str, Any]:
    """Read the user's settings.json; comments, which it allows, are taken out first."""
    text = (read_small(folder / "settings.json") or b"").decode("utf-8", "replace")
    with contextlib.suppress(ValueError):
        value = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
        return value if isinstance(value, dict) else {}
    return {}


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _usage(stats: Mapping[str, Any]) -> Usage:
    return Usage(*(number(stats.get(name)) for name in ("input_tokens", "output_tokens", "cached")))


def _message(event: Mapping[str, Any]) -> str:
    """Return the vendor's own words out of ``[API Error: {"error": {…}}]``."""
    message = str(table(event.get("error")).get("message") or "no reason given")
    match = re.search(r"\{.*\}", message, re.DOTALL)
    with contextlib.suppress(ValueError):
        inner = table(json.loads(match[0]).get("error")) if match else {}
        if inner:
            return f"{inner.get('message')} (status: {inner.get('code')})"
    return message.removeprefix("[API Error: ").replace("]\n", " ").rstrip("]")


def _last_error(error_output: str) -> str:
    """Return the message of the JSON object at the end of the error output, or its last line."""
    start = error_output.rfind('{\n  "session_id"')
    start = start if start >= 0 else error_output.rfind('{\n  "error"')
    with contextlib.suppress(ValueError):
        if start >= 0:
            value, _ = json.JSONDecoder().raw_decode(error_output[start:])
            inner = table(table(value).get("error"))
            return f"{inner.get('message')} (status: {inner.get('code')})"
    lines = [line for line in error_output.splitlines() if line.strip() and line != "}"]
    unknown = [line for line in lines if line.startswith("Unknown argument")]
    return (unknown or lines[-1:] or ["no answer in its output"])[0].strip()


def _failure(error: str, error_output: str, exit_code: int) -> VendorReply:
    status = _status(error, error_output, exit_code)
    if exit_code == _NO_LOGIN or _KEY.search(error):
        status = 401
    if exit_code in (_BAD_INPUT, _TOO_MANY_TURNS, _UNTRUSTED):
        status = 400
    limited = status == 429 or (status is None and bool(_QUOTA.search(error)))
    return VendorReply(None, error=error, status=status, limited=limited)


def _status(error: str, error_output: str, exit_code: int) -> int | None:
    """Return the HTTP status: told, or what is left of it in an exit code of eight bits."""
    for text in (error, error_output):
        for first, second in reversed(_STATUS.findall(text)):
            if (code := int(first or second)) >= 400:
                return code
    for code in (400, 401, 403, 404, 408, 413, 429, 500, 502, 503, 504):
        if code % 256 == exit_code:
            return code
    return None
