"""Keep the former names of modules importable, with a warning, for one release.

``import evercontext.old`` gives the module of the new name. Rows leave this table with the release
after the one that renamed their module.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.abc import Loader  # its import costs more than all of this package's start

# Former name -> present name.
RENAMED: dict[str, str] = {
    "evercontext.access.approvals": "evercontext.access.pending_approvals",
    "evercontext.access.consoles": "evercontext.access.console_links",
    "evercontext.access.floor": "evercontext.access.never_auto_approved",
    "evercontext.access.launchers": "evercontext.access.launching_programs",
    "evercontext.access.projects": "evercontext.access.router_projects",
    "evercontext.access.shell": "evercontext.access.shell_parser",
    "evercontext.access.tokens": "evercontext.access.access_tokens",
    "evercontext.catalog.adopt": "evercontext.catalog.validation",
    "evercontext.catalog.card": "evercontext.catalog.entry",
    "evercontext.catalog.event_stream": "evercontext.mcp.client.event_stream",
    "evercontext.catalog.everyday": "evercontext.catalog.synonyms",
    "evercontext.catalog.greeting": "evercontext.mcp.client.handshake",
    "evercontext.catalog.http": "evercontext.mcp.client.http",
    "evercontext.catalog.http1": "evercontext.mcp.client.http1",
    "evercontext.catalog.listing": "evercontext.mcp.client.listing",
    "evercontext.catalog.picking": "evercontext.catalog.model_search",
    "evercontext.catalog.request": "evercontext.catalog.query_cleaning",
    "evercontext.catalog.shelves": "evercontext.catalog.resources",
    "evercontext.catalog.sse": "evercontext.mcp.client.sse",
    "evercontext.catalog.stdio": "evercontext.mcp.client.stdio",
    "evercontext.catalog.suspicion": "evercontext.catalog.injection_flags",
    "evercontext.catalog.wire": "evercontext.mcp.client.exchange",
    "evercontext.catalog.wording": "evercontext.catalog.query_words",
    "evercontext.context.render": "evercontext.context.layer_messages",
    "evercontext.context.shape": "evercontext.context.text_shape",
    "evercontext.context.tokens": "evercontext.context.token_estimate",
    "evercontext.context.watch": "evercontext.context.latency_warning",
    "evercontext.domain.prompt": "evercontext.domain.prompt_template",
    "evercontext.domain.scope": "evercontext.domain.caller_scope",
    "evercontext.domain.status": "evercontext.domain.error_codes",
    "evercontext.domain.verdict": "evercontext.domain.check_verdicts",
    "evercontext.domain.view": "evercontext.domain.model_view",
    "evercontext.domain.visible": "evercontext.domain.visible_text",
    "evercontext.events.context_figures": "evercontext.events.context_statistics",
    "evercontext.events.ledger": "evercontext.events.log_index",
    "evercontext.events.redact": "evercontext.events.redaction",
    "evercontext.events.segments": "evercontext.events.log_reader",
    "evercontext.files.before": "evercontext.files.tree_before_task",
    "evercontext.files.beneath": "evercontext.files.open_beneath",
    "evercontext.files.digest": "evercontext.files.tree_digest",
    "evercontext.files.failures": "evercontext.files.os_errors",
    "evercontext.files.gitdirs": "evercontext.files.git_directories",
    "evercontext.files.identity": "evercontext.files.project_identity",
    "evercontext.files.instant": "evercontext.files.clock",
    "evercontext.files.kernel": "evercontext.files.system_calls",
    "evercontext.files.listing": "evercontext.files.directory_listing",
    "evercontext.files.locality": "evercontext.files.local_disk",
    "evercontext.files.locks": "evercontext.files.path_locks",
    "evercontext.files.made": "evercontext.files.links_and_directories",
    "evercontext.files.names": "evercontext.files.path_names",
    "evercontext.files.pipes": "evercontext.files.git_pipes",
    "evercontext.files.private": "evercontext.files.private_folders",
    "evercontext.files.protected": "evercontext.files.protected_paths",
    "evercontext.files.records": "evercontext.files.journal_records",
    "evercontext.files.recovery": "evercontext.files.journal_recovery",
    "evercontext.files.search": "evercontext.files.text_search",
    "evercontext.files.segments": "evercontext.files.journal_segments",
    "evercontext.files.small": "evercontext.files.small_files",
    "evercontext.files.snapshot": "evercontext.files.tree_snapshot",
    "evercontext.files.tree": "evercontext.files.file_tree",
    "evercontext.files.walking": "evercontext.files.directory_walk",
    "evercontext.process.confine": "evercontext.process.confinement",
    "evercontext.process.ending": "evercontext.process.shutdown",
    "evercontext.process.launcher": "evercontext.process.supervisor",
    "evercontext.process.leaving": "evercontext.process.fast_exit",
    "evercontext.process.listening": "evercontext.process.listening_ports",
    "evercontext.process.metadata": "evercontext.process.metadata_proxy",
    "evercontext.process.owner": "evercontext.process.process_identity",
    "evercontext.process.stalled": "evercontext.process.stall_watch",
    "evercontext.process.system": "evercontext.process.system_paths",
    "evercontext.process.tree": "evercontext.process.process_tree",
    "evercontext.process.workers": "evercontext.process.worker_threads",
    "evercontext.retrieval.static_model": "evercontext.retrieval.static_vectors",
    "evercontext.server.answers": "evercontext.server.responses",
    "evercontext.server.catalog_search": "evercontext.server.router.catalog_search",
    "evercontext.server.client_files": "evercontext.cli.client_files",
    "evercontext.server.doors": "evercontext.server.exposed_tools",
    "evercontext.server.eras": "evercontext.mcp.revisions",
    "evercontext.server.figures": "evercontext.server.log_metrics",
    "evercontext.server.jsonc": "evercontext.cli.jsonc",
    "evercontext.server.leaving": "evercontext.server.disconnect",
    "evercontext.server.list_changes": "evercontext.server.router.list_changes",
    "evercontext.server.mcp": "evercontext.server.mcp_tools",
    "evercontext.server.mcp_install": "evercontext.cli.mcp_install",
    "evercontext.server.offer": "evercontext.server.router.offer",
    "evercontext.server.on_demand": "evercontext.server.lazy_app",
    "evercontext.server.router_answers": "evercontext.server.router.results",
    "evercontext.server.router_stdio": "evercontext.server.router.stdio",
    "evercontext.server.stdin": "evercontext.process.stdin",
    "evercontext.server.visitors": "evercontext.server.router.authentication",
    "evercontext.server.watch": "evercontext.server.disconnect_watcher",
    "evercontext.settings.hooks": "evercontext.settings.hook_config",
    "evercontext.settings.projects": "evercontext.settings.project_file_limits",
    "evercontext.storage.at_once": "evercontext.storage.sync_transaction",
    "evercontext.storage.away": "evercontext.storage.offline_store",
    "evercontext.storage.checksum": "evercontext.storage.row_checksum",
    "evercontext.storage.choose": "evercontext.storage.opener",
    "evercontext.storage.connect": "evercontext.storage.sqlite_connection",
    "evercontext.storage.copying": "evercontext.storage.sqlite_copy",
    "evercontext.storage.recover": "evercontext.storage.sqlite_recovery",
    "evercontext.storage.remembered": "evercontext.storage.version_cache",
    "evercontext.storage.turn": "evercontext.storage.write_lock",
    "evercontext.storage.words": "evercontext.storage.fulltext_query",
    "evercontext.tools.approval": "evercontext.tools.approval_gate",
    "evercontext.tools.audit": "evercontext.tools.audit_line",
    "evercontext.tools.comparing": "evercontext.tools.line_comparison",
    "evercontext.tools.decorate": "evercontext.tools.tool_decorator",
    "evercontext.tools.hooks": "evercontext.tools.hook_runner",
    "evercontext.tools.schema": "evercontext.tools.argument_check",
    "evercontext.workspace.commands": "evercontext.workspace.command_runner",
    "evercontext.workspace.conflict": "evercontext.workspace.edit_conflict",
    "evercontext.workspace.detection": "evercontext.workspace.project_commands",
    "evercontext.workspace.drafts": "evercontext.workspace.proposed_changes",
    "evercontext.workspace.execution": "evercontext.workspace.execution_tools",
    "evercontext.workspace.failures.reading": "evercontext.workspace.failures.parse",
    "evercontext.workspace.generated": "evercontext.workspace.generated_files",
    "evercontext.workspace.marks": "evercontext.workspace.command_marks",
    "evercontext.workspace.nearest": "evercontext.workspace.nearest_lines",
    "evercontext.workspace.onlookers": "evercontext.workspace.read_only_commands",
    "evercontext.workspace.outcomes": "evercontext.workspace.check_counts",
    "evercontext.workspace.planted": "evercontext.workspace.planted_files",
    "evercontext.workspace.protection": "evercontext.workspace.protected_changes",
    "evercontext.workspace.reading": "evercontext.workspace.read_tools",
    "evercontext.workspace.reads": "evercontext.workspace.read_ledger",
    "evercontext.workspace.remote": "evercontext.workspace.remote_workspace",
    "evercontext.workspace.requests": "evercontext.workspace.http_tool",
    "evercontext.workspace.schema": "evercontext.workspace.parameter_schema",
    "evercontext.workspace.syntax": "evercontext.workspace.compile_check",
    "evercontext.workspace.writing": "evercontext.workspace.write_tools",
    "evercontext.index.analyst": "evercontext.index.worker_process",
    "evercontext.index.announce": "evercontext.index.remote_ingest",
    "evercontext.index.asking": "evercontext.index.partial_search",
    "evercontext.index.block": "evercontext.index.corpus_rows",
    "evercontext.index.borrowed": "evercontext.index.external_vectors",
    "evercontext.index.commit_pass": "evercontext.index.commit_index",
    "evercontext.index.commit_table": "evercontext.index.chunk_table",
    "evercontext.index.committed": "evercontext.index.commit_index",
    "evercontext.index.crew": "evercontext.index.worker_pool",
    "evercontext.index.details": "evercontext.index.question_details",
    "evercontext.index.folder": "evercontext.index.location",
    "evercontext.index.hollow": "evercontext.index.strip_bodies",
    "evercontext.index.lexicon": "evercontext.index.tokenize",
    "evercontext.index.live": "evercontext.index.current_corpus",
    "evercontext.index.names": "evercontext.index.definition_features",
    "evercontext.index.overlay": "evercontext.index.external_vectors",
    "evercontext.index.place": "evercontext.index.opener",
    "evercontext.index.plain": "evercontext.index.partial_search",
    "evercontext.index.reading": "evercontext.index.source_reader",
    "evercontext.index.scan": "evercontext.index.tokenize",
    "evercontext.index.stems": "evercontext.index.filename_features",
    "evercontext.index.tally": "evercontext.index.tokenize",
    "evercontext.index.trust": "evercontext.index.location",
    "evercontext.index.words": "evercontext.index.word_scores",
    "evercontext.index.worker": "evercontext.index.queue_worker",
    "evercontext.memory.arrivals": "evercontext.memory.outbox_delivery",
    "evercontext.memory.days": "evercontext.memory.calendar_days",
    "evercontext.memory.following": "evercontext.memory.undo_and_rename",
    "evercontext.memory.intake": "evercontext.memory.jsonl_import",
    "evercontext.memory.moments": "evercontext.memory.date_phrases",
    "evercontext.memory.queue": "evercontext.memory.outbox",
    "evercontext.memory.waiting": "evercontext.memory.outbox_delivery",
    "evercontext.models.listening": "evercontext.models.model_stream",
    "evercontext.models.reach": "evercontext.models.connection_errors",
    "evercontext.models.plugged": "evercontext.models.plugin_models",
    "evercontext.models.deferred": "evercontext.models.lazy_model",
    "evercontext.models.windows": "evercontext.models.context_windows",
    "evercontext.models.typos": "evercontext.models.unknown_models",
    "evercontext.models.wire_names": "evercontext.models.tool_names",
    "evercontext.models.embedders.wire": "evercontext.models.embedders.batches",
    "evercontext.models.embedders.word_pieces": "evercontext.models.embedders.wordpiece",
    "evercontext.models.embedded.own_files": "evercontext.models.embedded.written_files",
    "evercontext.evaluation.place": "evercontext.evaluation.target_file",
    "evercontext.evaluation.form": "evercontext.evaluation.text_format",
    "evercontext.evaluation.finding": "evercontext.evaluation.issue",
    "evercontext.evaluation.substance": "evercontext.evaluation.gibberish",
    "evercontext.evaluation.losses": "evercontext.evaluation.content_loss",
    "evercontext.evaluation.restructured": "evercontext.evaluation.restructured_text",
    "evercontext.evaluation.phrases": "evercontext.evaluation.judge_messages",
    "evercontext.evaluation.template": "evercontext.evaluation.prompt_template",
    "evercontext.server.console.door": "evercontext.server.console.application",
    "evercontext.server.console.talks": "evercontext.server.console.sessions",
    "evercontext.server.console.finding": "evercontext.server.console.search",
    "evercontext.server.console.toolshed": "evercontext.server.console.tools",
    "evercontext.server.console.visitors": "evercontext.server.console.authentication",
    "evercontext.server.console.watch": "evercontext.server.console.event_feed",
    "evercontext.server.console.figures": "evercontext.server.console.statistics",
    "evercontext.server.console.history": "evercontext.server.console.kpi_history",
    "evercontext.agent.repair.mender": "evercontext.agent.repair.repairer",
    "evercontext.agent.repair.ledger": "evercontext.agent.repair.attempt_journal",
    "evercontext.agent.repair.briefing": "evercontext.agent.repair.repair_prompt",
    "evercontext.agent.repair.project": "evercontext.agent.repair.project_view",
    "evercontext.agent.repair.fixers.every": "evercontext.agent.repair.fixers.registry",
    "evercontext.agent.repair.fixers.source": "evercontext.agent.repair.fixers.python_source",
    "evercontext.agent.repair.fixers.importing": "evercontext.agent.repair.fixers.imports",
    "evercontext.workspace.failures.compiled": "evercontext.workspace.failures.go_and_rust",
}


class RenamedModules:
    """Find modules by their former names; asked only where nothing else has the name."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load a former name, or nothing for any other."""
        return ModuleSpec(name, cast("Loader", self)) if name in RENAMED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave the placeholder to the import system; `exec_module` replaces it."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put the present module where the former name is looked up."""
        former, present = module.__name__, RENAMED[module.__name__]
        warnings.warn(
            f"{former} is now {present}; the former name goes with the next release",
            DeprecationWarning,
            stacklevel=2,  # frames of the import system are not counted
        )
        sys.modules[former] = import_module(present)


def install() -> None:
    """Look up former names from now on."""
    if not any(isinstance(finder, RenamedModules) for finder in sys.meta_path):
        sys.meta_path.append(RenamedModules())
