from __future__ import annotations

import pytest

from evercontext import errors
from evercontext.domain.error_codes import http_status, json_rpc_code


def every(kind: type[errors.EverContextError]) -> list[type[errors.EverContextError]]:
    children = [kind for kind in kind.__subclasses__() if kind.__module__ == errors.__name__]
    return [kind, *(found for child in children for found in every(child))]


@pytest.mark.parametrize("kind", every(errors.EverContextError), ids=lambda kind: kind.code)
def test_every_error_has_a_status_and_a_code(kind: type[errors.EverContextError]) -> None:
    error = kind("x")
    assert 400 <= http_status(error) < 600
    assert -32_700 <= json_rpc_code(error) <= -32_000


@pytest.mark.contract("E9", "E10", "E11")
@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (errors.PathEscape, 400),
        (errors.ExtensionRefused, 400),
        (errors.Unauthorized, 401),
        (errors.ForeignHost, 403),
        (errors.ProtectedPath, 403),
        (errors.ReadOnlyTree, 403),
        (errors.NotFound, 404),
        (errors.AlreadyExists, 409),
        (errors.Changed, 409),
        (errors.TooLarge, 413),
        (errors.NotUtf8, 415),
        (errors.InvalidArguments, 422),
        (errors.IoFailed, 500),
        (errors.StoreTimeout, 503),
        (errors.DiskFull, 507),
    ],
)
def test_promised_statuses(kind: type[errors.EverContextError], status: int) -> None:
    assert http_status(kind("x")) == status


def test_unauthorized_has_its_own_json_rpc_code() -> None:
    assert json_rpc_code(errors.Unauthorized("x")) == -32_001
