"""EverContext: a local-first coding agent and context engine."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from evercontext import renamed

renamed.install()

__version__ = "0.1.0"

# Loaded when first asked for: `import evercontext` must stay instant.
_PUBLIC = {
    "AssembledContext": "evercontext.context.config",
    "AssemblyOptions": "evercontext.context.config",
    "ContextAssemblerService": "evercontext.context.assembler",
    "ContextConfig": "evercontext.context.config",
    "ContextMetadata": "evercontext.context.config",
    "ContextOverflowError": "evercontext.context.config",
    "ContextValidator": "evercontext.context.validate",
    "EverContext": "evercontext.app",
    "KanaAIBridge": "evercontext.bridge",
    "MemoryLayer": "evercontext.context.config",
    "MemoryStore": "evercontext.memory.store",
    "MemoryType": "evercontext.domain.memory",
    "MessageBuilder": "evercontext.context.layer_messages",
    "MessageCreate": "evercontext.memory.messages",
    "MessageRepository": "evercontext.memory.messages",
    "RetrievalOptions": "evercontext.domain.memory",
    "RetrievalOrchestrator": "evercontext.memory.orchestrator",
    "SessionRepository": "evercontext.memory.sessions",
    "Settings": "evercontext.settings",
    "TokenEstimator": "evercontext.context.token_estimate",
}

__all__ = [*sorted(_PUBLIC), "__version__"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'evercontext' has no attribute {name!r}")
