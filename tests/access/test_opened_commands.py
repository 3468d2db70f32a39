"""A3, cases 68 and 70: what opens the network, or the way out, to a command. Nothing else does."""

from __future__ import annotations

import pytest

from evercontext.access.approval_rules import granted_access, parse, rules_for
from evercontext.access.permissions import Permissions
from evercontext.domain.tool import CommandAccess, Effect, Tool, ToolResult

SANDBOX, NETWORK, OUTSIDE = CommandAccess
pytestmark = pytest.mark.case(68)


async def nothing(*_: object) -> ToolResult:
    return ToolResult("")


RUN = Tool("run_command", "Run.", {}, Effect.EXECUTE | Effect.WRITE, nothing)


def permissions(*rules: str, yes: bool = True) -> Permissions:
    read = [rule.partition(" ") for rule in rules]
    return Permissions("/p", yes, [parse(verdict, text) for verdict, _, text in read])


def asks(permits: Permissions, command: str, access: str = "") -> tuple[str, CommandAccess]:
    arguments = {"command": command} | ({"access": access} if access else {})
    return permits.ruling(RUN, arguments).verdict, permits.granted(RUN, arguments)


def test_what_was_allowed_beforehand_was_allowed_in_the_sandbox() -> None:
    for rules in ([], ["allow *"], ["allow run_command"], ["allow run_command(npm *)"]):
        permits = permissions(*rules)
        assert asks(permits, "npm install") == ("allow", SANDBOX)
        assert asks(permits, "npm install", "network") == ("ask", SANDBOX)
        assert asks(permits, "npm install", "outside") == ("ask", SANDBOX)


def test_a_rule_opens_what_it_names_and_no_more() -> None:
    permits = permissions("allow network(npm install *)", yes=False)
    assert asks(permits, "npm install left-pad", "network") == ("allow", NETWORK)
    assert asks(permits, "npm install") == ("allow", NETWORK)
    assert asks(permits, "cd web && npm install") == ("ask", NETWORK)
    assert asks(permits, "cd web && npm install", "network") == ("allow", NETWORK)
    assert asks(permits, "npm install", "outside") == ("ask", NETWORK)
    assert asks(permits, "npm install; curl evil.example", "network") == ("ask", SANDBOX)
    assert asks(permits, "npm install > $HOME/x", "network") == ("ask", SANDBOX)
    assert asks(permits, "npm publish", "network") == ("ask", SANDBOX)


def test_the_way_out_has_the_network_too() -> None:
    permits = permissions("allow outside(docker ps *)")
    assert asks(permits, "docker ps -a", "outside") == ("allow", OUTSIDE)
    assert asks(permits, "docker ps -a", "network") == ("allow", OUTSIDE)


def test_a_denial_wins_and_a_denied_network_closes_the_way_out() -> None:
    permits = permissions("allow network(curl *)", "allow outside(curl *)", "deny network")
    assert asks(permits, "curl x", "network") == ("deny", SANDBOX)
    assert asks(permits, "curl x", "outside") == ("deny", SANDBOX)
    assert asks(permissions("deny network"), "make test") == ("allow", SANDBOX)
    assert asks(permissions("ask network(npm *)", "allow network"), "npm i", "network")[0] == "ask"


@pytest.mark.case(70)
def test_the_floor_holds_above_every_rule() -> None:
    """A rule says what an approved command may use; what is never auto-approved is still asked."""
    permits = permissions("allow network(git push *)", "allow outside(sudo *)")
    assert asks(permits, "git push origin main", "network") == ("ask", NETWORK)
    assert asks(permits, "sudo ls", "outside")[0] == "ask"


def test_rules_that_cannot_be_read_open_nothing() -> None:
    permits = permissions("allow network")
    permits.unread = True
    assert permits.granted(RUN, {"command": "curl x"}) is SANDBOX


def test_always_stores_what_was_seen() -> None:
    call = {"command": "cd web && npm install left-pad", "access": "network"}
    assert [rule.text for rule in rules_for(RUN, call)] == ["network(npm install *)"]
    plain = {"command": "pip install x"}
    assert [rule.text for rule in rules_for(RUN, plain)] == ["run_command(pip install *)"]
    assert [rule.text for rule in rules_for(RUN, plain, OUTSIDE)] == ["outside(pip install *)"]
    assert rules_for(RUN, {"command": "sh -c 'curl x'", "access": "network"}) == ()
    stored = rules_for(RUN, plain, NETWORK)
    assert granted_access(stored, RUN, plain) is NETWORK
