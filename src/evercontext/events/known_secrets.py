"""What must never be written: one redactor for the log and for everything in the database."""

from __future__ import annotations

from evercontext.events.redaction import Redactor, secret_values
from evercontext.settings import Settings, process_environment


def redactor(settings: Settings) -> Redactor:
    """Every secret in the environment, and those of the settings."""
    given = (settings.openai_api_key, settings.anthropic_api_key, settings.token)
    known = [secret for secret in (*given, settings.catalog_token) if secret]
    login = _login(settings.database_url or "")
    return Redactor([*secret_values(process_environment()), *known, *login])


def _login(address: str) -> list[str]:
    """Name and password of a database together: a password alone is often a common word."""
    login = address.partition("//")[2].rpartition("@")[0]
    return [login] if ":" in login else []
