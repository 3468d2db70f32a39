"""Map each error to its HTTP status and JSON-RPC code."""

from __future__ import annotations

from evercontext import errors
from evercontext.errors import EverContextError

JSON_RPC_INVALID_PARAMS = -32602
JSON_RPC_INTERNAL = -32603
JSON_RPC_SERVER = -32000
JSON_RPC_UNAUTHORIZED = -32001

_TABLE: dict[type[EverContextError], tuple[int, int]] = {
    EverContextError: (500, JSON_RPC_INTERNAL),
    errors.UsageError: (400, JSON_RPC_INVALID_PARAMS),
    errors.ConfigError: (500, JSON_RPC_INTERNAL),
    errors.UntrustedConfig: (403, JSON_RPC_SERVER),
    errors.PolicyError: (403, JSON_RPC_SERVER),
    errors.PathEscape: (400, JSON_RPC_SERVER),
    errors.PathRefused: (400, JSON_RPC_SERVER),
    errors.ExtensionRefused: (400, JSON_RPC_SERVER),
    errors.TooLarge: (413, JSON_RPC_SERVER),
    errors.NotUtf8: (415, JSON_RPC_SERVER),
    errors.FileProblem: (500, JSON_RPC_SERVER),
    errors.NotFound: (404, JSON_RPC_SERVER),
    errors.AlreadyExists: (409, JSON_RPC_SERVER),
    errors.Changed: (409, JSON_RPC_SERVER),
    errors.DiskFull: (507, JSON_RPC_SERVER),
    errors.ToolProblem: (500, JSON_RPC_SERVER),
    errors.UnknownTool: (404, JSON_RPC_INVALID_PARAMS),
    errors.InvalidArguments: (422, JSON_RPC_INVALID_PARAMS),
    errors.EditMismatch: (409, JSON_RPC_SERVER),
    errors.ToolTimeout: (504, JSON_RPC_SERVER),
    errors.ToolCrashed: (500, JSON_RPC_INTERNAL),
    errors.ModeRefused: (403, JSON_RPC_SERVER),
    errors.HookBlocked: (403, JSON_RPC_SERVER),
    errors.ApprovalDenied: (403, JSON_RPC_SERVER),
    errors.ModelProblem: (502, JSON_RPC_SERVER),
    errors.ModelUnavailable: (503, JSON_RPC_SERVER),
    errors.RateLimited: (429, JSON_RPC_SERVER),
    errors.LimitReached: (429, JSON_RPC_SERVER),
    errors.SessionBusy: (409, JSON_RPC_SERVER),
    errors.NoSandbox: (503, JSON_RPC_SERVER),
    errors.ProcessTimeout: (504, JSON_RPC_SERVER),
    errors.StoreBusy: (503, JSON_RPC_SERVER),
    errors.StoreGone: (503, JSON_RPC_SERVER),
    errors.StoreReplaced: (503, JSON_RPC_SERVER),
    errors.StoreTimeout: (503, JSON_RPC_SERVER),
    errors.StoreConflict: (409, JSON_RPC_SERVER),
    errors.StoreForbidden: (403, JSON_RPC_SERVER),
    errors.ForeignHost: (403, JSON_RPC_SERVER),
    errors.ForeignOrigin: (403, JSON_RPC_SERVER),
    errors.Unauthorized: (401, JSON_RPC_UNAUTHORIZED),
    errors.BadRequest: (400, JSON_RPC_SERVER),
    errors.NoSuchRoute: (404, JSON_RPC_SERVER),
    errors.MethodRefused: (405, JSON_RPC_SERVER),
    errors.WrongMediaType: (415, JSON_RPC_SERVER),
    errors.RequestTimeout: (408, JSON_RPC_SERVER),
    errors.GatewayUnreachable: (502, JSON_RPC_SERVER),
    errors.ServerProblem: (502, JSON_RPC_SERVER),
    errors.ServerTimeout: (504, JSON_RPC_SERVER),
    errors.AuditUnavailable: (503, JSON_RPC_SERVER),
    errors.Busy: (503, JSON_RPC_SERVER),
    errors.Cancelled: (503, JSON_RPC_SERVER),
}


def _nearest(kind: type[EverContextError]) -> tuple[int, int]:
    return next(_TABLE[ancestor] for ancestor in kind.__mro__ if ancestor in _TABLE)


def http_status(error: EverContextError) -> int:
    """Return the HTTP status of an error: its own row, or its nearest ancestor's."""
    return _nearest(type(error))[0]


def json_rpc_code(error: EverContextError) -> int:
    """Return the JSON-RPC code of an error."""
    return _nearest(type(error))[1]
