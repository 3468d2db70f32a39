"""Build the redactor of every secret that the environment and the settings hold."""

from __future__ import annotations

from evercontext.events.redaction import Redactor, secret_values
from evercontext.settings import Settings, process_environment


def redactor(settings: Settings | None) -> Redactor:
    """Return the redactor of every secret in the environment and in the settings.

    Without settings, as before they are read, it knows those of the environment alone.
    """
    secrets = secret_values(process_environment())
    if settings is None:
        return Redactor(secrets)
    keys = (settings.openai_api_key, settings.anthropic_api_key)
    tokens = (settings.token, settings.catalog_token)
    secrets += [secret for secret in (*keys, *tokens) if secret]
    return Redactor([*secrets, *_login(settings.database_url or "")])


def _login(address: str) -> list[str]:
    """Name and password of a database together: a password alone is often a common word."""
    login = address.partition("//")[2].rpartition("@")[0]
    return [login] if ":" in login else []
