"""Schemathesis against the running gateway: no undeclared status, no 5xx, no odd body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.server.running import Gateway, running


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    place = tmp_path_factory.mktemp("schema")
    with running(place / "root", place / "home") as gateway:
        (gateway.root / "a.txt").write_text("x")
        yield gateway


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.contract("E9", "E10", "E11")
def test_gateway_keeps_to_its_schema(gateway: Gateway) -> None:
    schema = schemathesis.openapi.from_dict(gateway.get("/openapi.json").json())
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert {"/list_files", "/read_file", "/write_file"} <= {found.path for found in operations}
    for operation in operations:
        _probe(operation, gateway)


def _probe(operation: Any, gateway: Gateway) -> None:
    @given(case=operation.as_strategy())
    @settings(
        max_examples=20,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def probe(case: schemathesis.Case[Any]) -> None:
        # Which paths the policy refuses, no schema can say.
        case.call_and_validate(base_url=gateway.url, excluded_checks=[positive_data_acceptance])

    probe()
