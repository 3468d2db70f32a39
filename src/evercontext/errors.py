"""Define every error EverContext raises on purpose, in one tree.

::

    EverContextError
    ├── UsageError                the command line makes no sense
    ├── ConfigError               a setting or a configuration file is wrong
    │   └── UntrustedConfig       repository configuration that nobody trusted yet
    ├── PolicyError               the policy says no, whoever asks
    │   ├── PathEscape            outside the root
    │   ├── PathRefused           a name or kind of file that is never opened
    │   ├── ExtensionRefused      this kind of file is not allowed through this entrance
    │   ├── ProtectedPath         .git, .env, agent and editor configuration …
    │   ├── ReadOnlyTree          the tree cannot be written
    │   ├── TooLarge              over the size limit
    │   └── NotUtf8               not text as UTF-8
    ├── FileProblem               ordinary feedback about the tree
    │   ├── NotFound              no such file or directory
    │   ├── AlreadyExists         `create` met an existing file
    │   ├── Changed               the file is not the one that was read
    │   ├── DiskFull              no space left; the old content is kept
    │   └── IoFailed              the disk answered with an error
    ├── ToolProblem               a call that could not be made
    │   ├── UnknownTool
    │   ├── InvalidArguments
    │   ├── EditMismatch          the text to replace is not there, or not once
    │   ├── ToolTimeout
    │   ├── ToolCrashed           the tool raised something unexpected
    │   ├── ModeRefused           this mode offers no such effect
    │   ├── HookBlocked           a hook of the user's or the project's said no
    │   └── ApprovalDenied        a person said no
    │       └── NobodyToAsk       and there is nobody who could say yes
    ├── ModelProblem              the model could not answer
    │   ├── ModelUnknown          no provider or model of that name
    │   ├── ModelAuthFailed       key missing or refused
    │   ├── ModelUnavailable      unreachable, overloaded or cut off: may be tried again
    │   │   └── RateLimited       with the time the provider asked for
    │   ├── ModelRefused          the provider rejected the request itself
    │   ├── ContextTooLong        more than the model's window
    │   ├── AnswerFiltered        withheld by the provider's filter, or declined
    │   └── BadReply              not the JSON the protocol asks for
    ├── InvalidPlan               a plan that does not match the schema
    ├── JudgeProblem              a document could not be judged
    │   └── JudgeInvalid          the judge's answer is not one: may be tried again
    ├── LimitReached              turns, time, tokens or money
    ├── ProcessProblem            a child process could not be run
    │   ├── ProgramMissing
    │   ├── ProcessTimeout
    │   └── NoSandbox             no sandbox is available and none was waived
    ├── StoreProblem              the database
    │   ├── StoreCorrupt
    │   ├── StoreTooNew
    │   ├── StoreBusy
    │   │   └── StoreClash        another writer came first: may be done again
    │   ├── StoreReplaced         its file was removed or replaced: it is opened anew
    │   ├── StoreGone             the database server does not answer: may be tried again
    │   ├── StoreTimeout          a query ran too long and was stopped
    │   ├── StoreForbidden        the login may not do that
    │   └── StoreConflict         a row contradicts another one
    ├── DoorProblem               a request that got no further than the guard
    │   ├── ForeignHost           sent to a name that is not ours: DNS rebinding
    │   ├── ForeignOrigin         sent by a page of another site
    │   ├── Unauthorized          no token, or a wrong one
    │   ├── BadRequest            not a request HTTP allows
    │   ├── NoSuchRoute
    │   ├── MethodRefused         this route takes another method
    │   ├── WrongMediaType        a body that is not JSON
    │   ├── RequestTimeout        the request did not arrive in time
    │   └── GatewayUnreachable    the gateway that calls should go to does not answer
    ├── ServerProblem             an outside tool server
    │   ├── ServerGone            it is not running, or its connection closed
    │   └── ServerTimeout         it did not answer in time
    ├── LibraryMissing            a package is installed, but not a library it needs of the system
    ├── AuditUnavailable          the audit line could not be written: no write without it
    └── Cancelled                 the user stopped it
        └── Terminated            the system asked it to stop

Each surface has one table that turns these into its own codes: exit codes in
``domain/outcome.py``, HTTP and JSON-RPC codes in ``domain/error_codes.py``.
"""

from __future__ import annotations

import re
from typing import ClassVar


class EverContextError(Exception):
    """Base of the tree: a one-line message, and the fix where there is one."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, fix: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message}. {self.fix}" if self.fix else self.message


class UsageError(EverContextError):
    """The command line makes no sense."""

    code = "usage"


class ConfigError(EverContextError):
    """A setting or a configuration file is wrong."""

    code = "config"


class UntrustedConfig(ConfigError):
    """Repository configuration that executes or loosens policy, not trusted yet."""

    code = "untrusted_config"


class PolicyError(EverContextError):
    """The policy says no, whoever asks."""

    code = "policy"


class PathEscape(PolicyError):
    """The path leads outside the root."""

    code = "path_escapes_root"


class PathRefused(PolicyError):
    """A name or a kind of file that is never opened."""

    code = "path_refused"


class ExtensionRefused(PolicyError):
    """This kind of file is not allowed through this entrance."""

    code = "extension_not_allowed"


class ProtectedPath(PolicyError):
    """A protected place, or a hard link that may lead to one."""

    code = "protected_path"


class ReadOnlyTree(PolicyError):
    """The tree cannot be written."""

    code = "read_only"


class TooLarge(PolicyError):
    """Over the size limit."""

    code = "too_large"


class NotUtf8(PolicyError):
    """Not text as UTF-8."""

    code = "not_utf8"


class FileProblem(EverContextError):
    """Ordinary feedback about the tree."""

    code = "file"


class NotFound(FileProblem):
    """No such file or directory."""

    code = "not_found"


class AlreadyExists(FileProblem):
    """``create`` met an existing file."""

    code = "exists"


class Changed(FileProblem):
    """The file is not the one that was read."""

    code = "changed"


class DiskFull(FileProblem):
    """No space left on the device; the old content is kept."""

    code = "disk_full"


class IoFailed(FileProblem):
    """The disk answered with an error; nothing is acknowledged."""

    code = "io_error"


class ToolProblem(EverContextError):
    """A tool call that could not be made."""

    code = "tool"


class UnknownTool(ToolProblem):
    """No tool of that name is offered here."""

    code = "unknown_tool"


class InvalidArguments(ToolProblem):
    """The arguments do not match the tool's schema."""

    code = "invalid_arguments"


class EditMismatch(ToolProblem):
    """The text to replace is not in the file, or more than once."""

    code = "edit_mismatch"


class ToolTimeout(ToolProblem):
    """The tool did not finish in its time."""

    code = "tool_timeout"


class ToolCrashed(ToolProblem):
    """The tool raised something unexpected."""

    code = "tool_crashed"


class ModeRefused(ToolProblem):
    """This mode (plan) allows no such effect."""

    code = "mode_refused"


class HookBlocked(ToolProblem):
    """A hook said no; its words say why."""

    code = "hook_blocked"


class ApprovalDenied(ToolProblem):
    """A person, or a rule of theirs, said no."""

    code = "approval_denied"


class NobodyToAsk(ApprovalDenied):
    """Approval is needed and there is nobody who could give it."""

    code = "approval_needed"


class ModelProblem(EverContextError):
    """The model could not answer."""

    code = "model"


class ModelUnknown(ModelProblem):
    """No provider or model of that name."""

    code = "model_unknown"


class ModelMistyped(ModelUnknown):
    """A name that is no model of any provider as far as can be seen: most likely a typo."""

    code = "model_mistyped"


class ModelAuthFailed(ModelProblem):
    """The key is missing or was refused."""

    code = "model_auth"


class ModelUnavailable(ModelProblem):
    """Unreachable, overloaded or cut off in the middle: may be tried again.

    ``retry_after`` is what the provider asked to wait, in seconds.
    """

    code = "model_unavailable"

    def __init__(
        self, message: str, *, retry_after: float | None = None, fix: str | None = None
    ) -> None:
        super().__init__(message, fix=fix)
        self.retry_after = retry_after


class RateLimited(ModelUnavailable):
    """Too many requests."""

    code = "rate_limited"


class ModelRefused(ModelProblem):
    """The provider rejected the request itself; trying again would not help."""

    code = "model_refused"


class ContextTooLong(ModelProblem):
    """More tokens than the model's window."""

    code = "context_too_long"


class AnswerFiltered(ModelProblem):
    """The provider withheld the answer, or the model declined to give one."""

    code = "answer_filtered"


class BadReply(ModelProblem):
    """Not the JSON that the protocol asks for."""

    code = "bad_reply"


class InvalidPlan(EverContextError):
    """A plan that does not match the schema, or that can never finish."""

    code = "invalid_plan"
    replies: int = 0
    """How often a model was asked for it, in vain, and the tokens that took."""
    input_tokens: int = 0
    output_tokens: int = 0


class JudgeProblem(EverContextError):
    """A document could not be judged."""

    code = "judge"


class JudgeInvalid(JudgeProblem):
    """The judge's answer is not a judgement; another try may bring one."""

    code = "judge_invalid"


class LimitReached(EverContextError):
    """Turns, time, tokens or money ran out."""

    code = "limit"


class SessionBusy(EverContextError):
    """Somebody else is being answered in the same session."""

    code = "session_busy"


class ProcessProblem(EverContextError):
    """A child process could not be run."""

    code = "process"


class ProgramMissing(ProcessProblem):
    """The program is not on PATH."""

    code = "program_missing"


class ProcessTimeout(ProcessProblem):
    """The child did not finish in its time; its whole tree was killed."""

    code = "process_timeout"


class NoSandbox(ProcessProblem):
    """No sandbox is available for the command and none was waived."""

    code = "no_sandbox"


class StoreProblem(EverContextError):
    """The database could not do it."""

    code = "store"


class StoreCorrupt(StoreProblem):
    """The database file is damaged."""

    code = "store_corrupt"


class StoreTooNew(StoreProblem):
    """The database was written by a newer version."""

    code = "store_too_new"


class StoreBusy(StoreProblem):
    """Another process holds the database."""

    code = "store_busy"


class StoreClash(StoreBusy):
    """Another writer came first and this transaction was rolled back: it can be done again."""

    code = "store_clash"


class StoreGone(StoreProblem):
    """The database server does not answer, or hung up."""

    code = "store_gone"


class StoreReplaced(StoreProblem):
    """The file of the database was removed or replaced while it was open."""

    code = "store_replaced"


class StoreTimeout(StoreProblem):
    """A query ran too long and was stopped."""

    code = "store_timeout"


class StoreForbidden(StoreProblem):
    """The database does not let this login do that."""

    code = "store_forbidden"


class StoreConflict(StoreProblem):
    """A row contradicts another one: a unique key, a reference, a check."""

    code = "store_conflict"


class DoorProblem(EverContextError):
    """A request that got no further than the guard."""

    code = "door"


class ForeignHost(DoorProblem):
    """Sent to a name that is not ours, as DNS rebinding does."""

    code = "foreign_host"


class ForeignOrigin(DoorProblem):
    """Sent by a page of another site."""

    code = "foreign_origin"


class Unauthorized(DoorProblem):
    """No token, or a wrong one."""

    code = "unauthorized"


class BadRequest(DoorProblem):
    """Not a request HTTP allows."""

    code = "bad_request"


class NoSuchRoute(DoorProblem):
    """Nothing is served there."""

    code = "no_such_route"


class MethodRefused(DoorProblem):
    """This route takes another method."""

    code = "method_not_allowed"


class WrongMediaType(DoorProblem):
    """A body that is not declared as JSON; a page of another site could have sent it."""

    code = "wrong_media_type"


class RequestTimeout(DoorProblem):
    """The request did not arrive in time."""

    code = "request_timeout"


class GatewayUnreachable(DoorProblem):
    """The gateway that calls should go to does not answer."""

    code = "gateway_unreachable"


class ServerProblem(EverContextError):
    """An outside tool server answered with an error, or with nothing one can use."""

    code = "server_problem"


class ServerGone(ServerProblem):
    """An outside tool server is not running, or its connection closed."""

    code = "server_gone"


class ServerTimeout(ServerProblem):
    """An outside tool server did not answer in time."""

    code = "server_timeout"


class LibraryMissing(EverContextError):
    """A package is installed, but the system lacks a library that it needs."""

    code = "library_missing"

    def __init__(self, name: str, *, why: str | None = None) -> None:
        """``name`` is the library's file, as the system's linker names it."""
        problem = f"a system library is missing: {name}"
        super().__init__(f"{problem} ({why})" if why else problem, fix=_how_to_install(name))
        self.name = name


class AuditUnavailable(EverContextError):
    """The audit line could not be written, and nothing is written without it."""

    code = "audit_unavailable"


class Busy(EverContextError):
    """More is waiting already than can be done soon; it can be tried again."""

    code = "busy"


class Cancelled(EverContextError):
    """The user stopped it."""

    code = "cancelled"


class Terminated(Cancelled):
    """The system asked it to stop."""

    code = "terminated"


def _all(kind: type[EverContextError]) -> list[type[EverContextError]]:
    return [kind, *(descendant for child in kind.__subclasses__() for descendant in _all(child))]


def by_code(code: str) -> type[EverContextError]:
    """Return the class of a code that came over a wire; the base class if it is unknown."""
    return next((kind for kind in _all(EverContextError) if kind.code == code), EverContextError)


_LIBRARY = re.compile(r"(lib[\w+.-]+\.so[\w.]*): cannot open shared object file")
# Of each library: its package in Debian and Ubuntu, then in Fedora and Alpine.
_PACKAGES = {
    "libgomp.so.1": ("libgomp1", "libgomp"),
    "libstdc++.so.6": ("libstdc++6", "libstdc++"),
    "libgcc_s.so.1": ("libgcc-s1", "libgcc"),
    "libpq.so.5": ("libpq5", "libpq"),
}


def missing_library(problem: ImportError) -> LibraryMissing | None:
    """The system library that an import failed for, where that was the reason."""
    seen = _LIBRARY.search(str(problem))
    return LibraryMissing(seen[1]) if seen else None


def _how_to_install(name: str) -> str:
    if name not in _PACKAGES:
        return "Install the package of your system that holds it"
    debian, others = _PACKAGES[name]
    return f"Run: sudo apt-get install {debian} (Fedora, Alpine: the package {others})"
