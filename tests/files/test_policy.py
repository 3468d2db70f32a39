from __future__ import annotations

import pytest

from evercontext.errors import ExtensionRefused, ProtectedPath, TooLarge
from evercontext.files.policy import (
    agent_policy,
    extension,
    gateway_policy,
)


@pytest.mark.contract("E22")
@pytest.mark.parametrize("name", ["a.py", "a.md", "a.txt", "a.json", "a.yaml", "a.yml"])
def test_the_gateway_takes_the_short_list(name: str) -> None:
    gateway_policy().check_file((name,))


@pytest.mark.contract("E22", "N2")
@pytest.mark.parametrize("name", ["a.rs", "Makefile", "b.Dockerfile", ".gitignore", "x.tsx"])
def test_the_agent_speaks_every_language(name: str) -> None:
    agent_policy().check_file((name,))
    with pytest.raises(ExtensionRefused):
        gateway_policy().check_file((name,))


@pytest.mark.contract("E35")
@pytest.mark.parametrize("name", ["a.exe", "a.py.exe", "a.so", "a.png", "a.dll"])
def test_unknown_kinds_are_refused_at_every_door(name: str) -> None:
    for policy in (agent_policy(), gateway_policy()):
        with pytest.raises(ExtensionRefused, match="extension not allowed"):
            policy.check_file((name,))


@pytest.mark.contract("E30")
def test_an_explicit_list_binds_the_agent_too() -> None:
    policy = agent_policy(frozenset({".py", ".rs", ".go"}))
    policy.check_file(("a.rs",))
    policy.check_file(("a.go",))
    with pytest.raises(ExtensionRefused):
        policy.check_file(("a.md",))


@pytest.mark.contract("E23", "E31")
def test_the_limit_is_inclusive() -> None:
    gateway_policy().check_size(524_288)
    with pytest.raises(TooLarge):
        gateway_policy().check_size(524_289)
    with pytest.raises(TooLarge):
        gateway_policy(max_bytes=10).check_size(11)


def test_examples_of_secrets_are_no_secrets() -> None:
    agent_policy().check_file((".env.example",))
    with pytest.raises(ProtectedPath):
        agent_policy().check_file((".env.local",))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.py", ".py"), ("a", ""), (".env", ""), ("a.tar.gz", ".gz"), ("a.", "."), ("..a.py", ".py")],
)
def test_extension(name: str, kind: str) -> None:
    assert extension(name) == kind
