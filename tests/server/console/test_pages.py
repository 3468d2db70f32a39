from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from evercontext.domain.event import Final, Task
from evercontext.events.log import EventLog
from tests.server.console.visit import Visit
from tests.server.console.world import Served, World


def test_sessions_are_listed_searched_and_read(visit: Visit) -> None:
    [session] = visit.get("sessions")["sessions"]
    assert session["messages"] == 6
    assert session["resume"] == f"evercontext chat -r {session['id']}"
    hits = visit.get("sessions", q="郵便番号")["hits"]
    assert {hit["session_id"] for hit in hits} == {session["id"]}
    told = visit.get(f"sessions/{session['id']}")
    assert [message["role"] for message in told["messages"]][:3] == ["user", "assistant", "tool"]
    page = visit.get(f"sessions/{session['id']}", limit=2)
    assert len(page["messages"]) == 2
    rest = visit.get(f"sessions/{session['id']}", after=page["next"])
    assert len(rest["messages"]) == 4
    assert visit.client.get("/console/api/sessions/none").status_code == 400


@pytest.mark.contract("E19")
def test_search_gives_ranked_chunks_with_reasons(visit: Visit) -> None:
    found = visit.get("search", q="where are passwords hashed")["chunks"]
    assert found[0]["path"] == "shop/accounts.py"
    assert found[0]["reasons"]
    assert [one["score"] for one in found] == sorted((o["score"] for o in found), reverse=True)
    japanese = visit.get("search", q="郵便番号の検証", prefix="shop/")["chunks"]
    assert japanese[0]["path"] == "shop/配送.py"
    assert visit.get("search", q="")["chunks"] == []


@pytest.mark.contract("R54")
def test_memories_are_recalled_with_why_corrected_and_forgotten(visit: Visit) -> None:
    best = visit.get("memories", q="do we deploy on Fridays?")["memories"][0]
    assert "Tuesdays" in best["content"]
    assert best["reasons"]
    edited = visit.post(f"memories/{best['id']}", {"content": "We deploy on Mondays."}).json()
    assert edited["source_type"] == "correction"
    now = visit.get("memories")["memories"]
    assert "We deploy on Mondays." in [one["content"] for one in now]
    assert best["id"] not in [one["id"] for one in now]
    old = visit.get("memories", state="superseded")["memories"]
    assert best["id"] in [one["id"] for one in old]
    assert visit.post(f"memories/{edited['id']}/forget", {}).status_code == 200
    assert visit.post(f"memories/{edited['id']}/forget", {}).status_code == 404
    assert visit.post("memories/none", {"content": "x"}).status_code == 404
    assert visit.client.get("/console/api/memories?state=odd").status_code == 422


@pytest.mark.case(125)
def test_memories_of_tools_are_marked_untrusted(visit: Visit) -> None:
    found = visit.get("memories")["memories"]
    assert [one["source_type"] for one in found if one.get("untrusted")] == ["tool"]


def test_a_new_memory_pages_before_older_ones(visit: Visit) -> None:
    for number in range(60):
        visit.post("memories", {"content": f"Fact number {number} of this project"})
    first = visit.get("memories")
    second = visit.get("memories", before=first["next"])
    ids = [one["id"] for one in (*first["memories"], *second["memories"])]
    assert len(first["memories"]) == 50
    assert len(set(ids)) == len(ids) > 60


def _listed(served: Served, secret: str, project: str) -> list[str]:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    request = urllib.request.Request(
        served.router,
        json.dumps(call).encode(),
        {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "authorization": f"Bearer {secret}",
            "x-evercontext-project": project,
        },
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        told: dict[str, Any] = json.loads(answer.read())
    return sorted(tool["name"] for tool in told["result"]["tools"])


@pytest.fixture
def secret(world: World) -> str:
    from tests.cli.command import evercontext

    name = f"t{world._scripts}"
    world._scripts += 1
    made = evercontext("tokens", "create", name, env={"EC_HOME": str(world.home)}, cwd=world.folder)
    assert made.code == 0, made.err
    return made.out.strip().split()[-1]


@pytest.mark.contract("T21", "T23", "T26")
def test_context_optimization_changes_what_clients_are_shown(
    visit: Visit, served: Served, secret: str
) -> None:
    two = ["tool_discovery", "tool_execute"]
    assert _listed(served, secret, "shop") == two
    assert visit.post("projects/shop", {"optimization": None}).json()["optimization"] is None
    every = _listed(served, secret, "shop")
    assert "weather__echo" in every
    assert len(every) > 5
    assert visit.post("servers/weather/tools/echo", {"on": False}).status_code == 200
    assert "weather__echo" not in _listed(served, secret, "shop")
    assert visit.post("projects/shop", {"optimization": "bm25"}).status_code == 200
    assert _listed(served, secret, "shop") == two
    assert visit.post("projects/shop", {"optimization": "magic"}).status_code == 422
    assert visit.post("projects/none", {"optimization": None}).status_code == 404


@pytest.mark.contract("T33")
def test_calls_and_refusals_are_shown(visit: Visit, served: Served, secret: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="401"):
        _listed(served, "wrong", "shop")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        _listed(served, secret, "elsewhere")
    refused = visit.get("calls", refused=1)["calls"]
    assert [call["status"] for call in refused[:2]] == [403, 401]
    assert visit.get("calls")["refused"] >= 2


def test_servers_tell_their_state_and_tokens_are_revoked(
    visit: Visit, served: Served, secret: str
) -> None:
    told = {one["id"]: one for one in visit.get("tools")["servers"]}
    assert told["weather"]["transport"] == "stdio"
    broken = visit.post("servers/broken/check", {}).json()
    assert broken["state"] == "failed"
    assert broken["problem"]
    assert broken["retry_in"] > 0
    weather = visit.post("servers/weather/check", {}).json()
    assert weather["state"] == "running"
    assert "Say the text again." in [tool["description"] for tool in weather["tools"]]
    assert visit.post("servers/none/check", {}).status_code == 404
    assert visit.post("servers/broken", {"enabled": False}).status_code == 200
    off = {one["id"]: one for one in visit.get("tools")["servers"]}["broken"]
    assert (off["enabled"], off["state"]) == (False, "off")
    assert visit.post("servers/weather/tools/never-seen", {"on": True}).status_code == 422
    name = visit.get("tools")["tokens"][-1]["name"]
    assert visit.post(f"tokens/{name}/revoke", {}).status_code == 200
    assert visit.post(f"tokens/{name}/revoke", {}).status_code == 404


@pytest.mark.contract("L21")
def test_scores_of_a_document_are_kept_over_time(visit: Visit) -> None:
    [document] = visit.get("evaluations")["documents"]
    assert len(document["scores"]) == 3
    one = visit.get(f"evaluations/{document['scores'][0]['id']}")
    assert one["score"] == document["scores"][0]["score"]
    assert visit.client.get("/console/api/evaluations/none").status_code == 404


@pytest.mark.contract("E48")
def test_figures_of_each_day(visit: Visit) -> None:
    told = visit.get("kpis", days=7)
    assert told["total"]["tasks"] >= 6
    assert told["total"]["policy_refusals"] >= 1
    assert sum(day["tasks"] for day in told["by_day"]) == told["total"]["tasks"]
    assert told["by_day"][-1]["input_tokens"] > 10_000


def test_figures_are_those_of_this_project_unless_all_are_asked_for(
    visit: Visit, world: World
) -> None:
    """F9: the same tasks that the list of runs shows."""
    here, everywhere = (visit.get("kpis", project=name) for name in ("", "all"))
    log = EventLog(world.home / "traces")
    begin = Task(text="x", root="/elsewhere", model="m", mode="agent", door="run")
    log.emit(begin, trace_id="else")
    log.emit(Final(status="failed", text="", exit_code=1), trace_id="else")
    log.close()
    assert visit.get("kpis")["total"] == here["total"]
    assert visit.get("kpis", project="all")["total"]["tasks"] == everywhere["total"]["tasks"] + 1


def test_settings_with_their_origin(visit: Visit, world: World) -> None:
    shown = {one["name"]: one for one in visit.get("settings")["settings"]}
    assert shown["root"]["value"] == str(world.root)
    assert "EC_APP_ROOT" in shown["root"]["origin"]
    assert shown["max_turns"]["origin"] == "default"
