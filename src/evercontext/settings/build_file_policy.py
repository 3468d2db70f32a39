"""Build the file policies of a project, the same for index, search, hooks and tools."""

from __future__ import annotations

from dataclasses import replace

from evercontext.files.policy import FilePolicy, agent_policy, gateway_policy
from evercontext.settings import Settings


def agent_rules(settings: Settings) -> FilePolicy:
    """The file policy of the agent: of its tools, its index, its commands and its hooks."""
    return _loosened(agent_policy(settings.allow_ext, settings.max_bytes), settings)


def gateway_rules(settings: Settings) -> FilePolicy:
    """The file policy of REST and MCP."""
    return _loosened(gateway_policy(settings.allow_ext, settings.max_bytes), settings)


def document_rules(settings: Settings, max_bytes: int) -> FilePolicy:
    """The file policy of a document that the user named: of any kind, and of another size."""
    return _loosened(FilePolicy(max_bytes=max_bytes), settings)


def _loosened(policy: FilePolicy, settings: Settings) -> FilePolicy:
    return replace(
        policy,
        exempt=(*policy.exempt, *settings.unprotect),
        hard_links=settings.allow_hard_links,
    )
