"""Schemathesis against the running gateway: no undeclared status, no 5xx, no odd body."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from evercontext.events.log import EventLog
from evercontext.server.metrics import Metrics
from evercontext.server.rest import build_gateway
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.remote import RemoteWorkspace
from evercontext.workspace.tools import workspace_tools
from tests.server.running import Gateway, running


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    place = tmp_path_factory.mktemp("schema")
    with running(place / "root", place / "home") as gateway:
        (gateway.root / "a.txt").write_text("x")
        yield gateway


def described() -> dict[str, Any]:
    """The schema of the gateway; describing the tools needs nobody to do their work."""
    tools = workspace_tools(RemoteWorkspace("http://127.0.0.1:9"))
    toolbox = Toolbox(tools, EventLog(Path("/nonexistent")))
    return build_gateway(toolbox, Metrics()).pages.openapi()


schema = schemathesis.openapi.from_dict(described())


def test_described_is_what_is_served(gateway: Gateway) -> None:
    assert gateway.get("/openapi.json").json() == described()


@pytest.mark.slow
@pytest.mark.contract("E9", "E10", "E11")
@schema.parametrize()
@settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_gateway_keeps_to_its_schema(case: schemathesis.Case[Any], gateway: Gateway) -> None:
    # Which paths the policy refuses, no schema can say.
    case.call_and_validate(base_url=gateway.url, excluded_checks=[positive_data_acceptance])
