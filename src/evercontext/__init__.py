"""EverContext: a local-first coding agent and context engine."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from evercontext import renamed

renamed.install()

__version__ = "0.1.0"

# Loaded when first asked for: `import evercontext` must stay instant.
_PUBLIC = {
    "AssembledContext": "evercontext.context.context_request",
    "AssemblyOptions": "evercontext.context.context_request",
    "ContextAssemblerService": "evercontext.context.assembler",
    "ContextConfig": "evercontext.context.context_request",
    "ContextMetadata": "evercontext.context.context_request",
    "ContextOverflowError": "evercontext.context.context_request",
    "ContextValidator": "evercontext.context.context_check",
    "EventLog": "evercontext.events.log",
    "EverContext": "evercontext.app",
    "KanaAIBridge": "evercontext.bridge",
    "Memory": "evercontext.memory.memory_table",
    "MemoryLayer": "evercontext.context.context_request",
    "MemoryStore": "evercontext.memory.memory_store",
    "MemoryType": "evercontext.domain.memory",
    "MessageBuilder": "evercontext.context.layer_messages",
    "MessageCreate": "evercontext.memory.messages",
    "MessageRepository": "evercontext.memory.messages",
    "PostgresStore": "evercontext.storage.postgres",
    "RetrievalOptions": "evercontext.domain.memory",
    "RetrievalOrchestrator": "evercontext.memory.recall",
    "RetrievedMemories": "evercontext.domain.memory",
    "RetrievedMemory": "evercontext.domain.memory",
    "SessionRepository": "evercontext.memory.sessions",
    "Settings": "evercontext.settings",
    "SourceType": "evercontext.domain.memory",
    "SqliteStore": "evercontext.storage.sqlite",
    "StoredMessage": "evercontext.memory.messages",
    "TokenEstimator": "evercontext.context.token_estimate",
}

__all__ = [*sorted(_PUBLIC), "__version__"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'evercontext' has no attribute {name!r}")
