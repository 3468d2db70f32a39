from __future__ import annotations

import re
import signal
import socket
from urllib.parse import urlsplit

import httpx2
import pytest

from evercontext.server.console.application import ROUTES
from evercontext.server.console.assets import assets, language_of
from evercontext.server.console.authentication import MOST_SESSIONS
from evercontext.settings import rows
from tests.cli.command import evercontext
from tests.server.console.visit import Visit, new_link
from tests.server.console.world import Served, World, serving
from tests.server.running import receive, status_of


def _raw(served: Served, path: str, *headers: str, method: str = "GET") -> bytes:
    port = int(served.url.rsplit(":", 1)[1])
    host = () if any(one.startswith("Host:") for one in headers) else (f"Host: 127.0.0.1:{port}",)
    lines = "\r\n".join([f"{method} {path} HTTP/1.1", *host, *headers, "Connection: close"])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
        link.sendall(f"{lines}\r\n\r\n".encode())
        return receive(link)


def test_the_link_lets_in_once(served: Served) -> None:
    with Visit(served.url) as first, Visit(served.url) as second:
        assert first.client.get("/console/").status_code == 401
        came = first.follow(served.link)
        assert came.status_code == 303
        cookie = came.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "Path=/console/" in cookie
        assert first.client.get("/console/").status_code == 200
        again = second.follow(served.link)
        assert again.status_code == 401
        assert "set-cookie" not in again.headers
        assert "evercontext console" in again.text
        assert second.client.get("/console/api/me").status_code == 401


def test_the_cookie_counts_only_at_the_consoles_own_name(served: Served, world: World) -> None:
    """X7: at another name, where every local server gets the cookies, it opens nothing."""
    link = new_link(world)
    with Visit(served.url) as one:
        # Neither is the link good there, nor is it used up.
        assert one.client.get(f"/console/?{urlsplit(link).query}").status_code == 401
        assert one.follow(link).status_code == 303
        assert one.client.get("/console/api/me").status_code == 200
        for host in ("127.0.0.1", "localhost"):
            elsewhere = {"host": f"{host}:{urlsplit(served.url).port}"}
            assert one.client.get("/console/api/me", headers=elsewhere).status_code == 401
            assert one.client.get("/console/", headers=elsewhere).status_code == 401


def test_looking_ahead_does_not_use_a_link_up(served: Served, world: World) -> None:
    link = new_link(world)
    with Visit(served.url) as one:
        one.client.headers["host"] = urlsplit(link).netloc
        path = f"/console/?{urlsplit(link).query}"
        assert one.client.head(path).status_code == 401
        assert one.client.get(path, headers={"sec-purpose": "prefetch"}).status_code == 401
        assert one.follow(link).status_code == 303


@pytest.mark.case(55)
@pytest.mark.parametrize("host", ["evil.example:8765", "0.0.0.0", "127.0.0.1"])
def test_other_hosts_are_refused(served: Served, host: str) -> None:
    for path in ("/console/", "/console/api/me", "/console/static/js/main.js"):
        assert status_of(_raw(served, path, f"Host: {host}")) == 403


@pytest.mark.case(56)
@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
def test_other_origins_are_refused(visit: Visit, origin: str) -> None:
    answer = visit.client.get("/console/api/me", headers={"origin": origin})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.case(57)
def test_a_change_needs_the_pages_own_token_and_json(visit: Visit) -> None:
    body = {"content": "forged"}
    bare = visit.client.post("/console/api/memories", json=body)
    wrong = visit.post("memories", body, **{"x-evercontext-csrf": "guess"})
    simple = visit.client.post(
        "/console/api/memories",
        content='{"content": "forged"}',
        headers={"content-type": "text/plain", "x-evercontext-csrf": visit.csrf},
    )
    assert (bare.status_code, wrong.status_code, simple.status_code) == (403, 403, 415)
    found = visit.get("memories")["memories"]
    assert all(one["content"] != "forged" for one in found)


@pytest.mark.case(59)
def test_pages_cannot_be_framed_or_fetched_by_other_sites(visit: Visit) -> None:
    page = visit.client.get("/console/")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "DENY"
    foreign = visit.client.get("/console/", headers={"sec-fetch-site": "cross-site"})
    assert foreign.status_code == 403


@pytest.mark.case(58)
def test_nothing_inline_can_run(visit: Visit) -> None:
    for path in ("/console/", "/console/runs/x", "/console/static/js/main.js", "/console/api/me"):
        answer = visit.client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    html = visit.client.get("/console/").text
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", html)
    sources = [one.content.decode() for name, one in assets().items() if name.endswith(".js")]
    sink = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|srcdoc")
    assert not [text for text in sources if sink.search(text)]


@pytest.mark.case(99)
def test_no_route_takes_a_command_line(visit: Visit) -> None:
    command = {"argv": ["touch", "pwned"], "command": "touch", "args": ["pwned"], "enabled": True}
    for path in ("servers", "servers/evil", "tools", "servers/evil/tools/x"):
        assert visit.post(path, command).status_code in (404, 405, 422), path
    before = {one["id"]: one["reached_by"] for one in visit.get("tools")["servers"]}
    assert visit.post("servers/weather", command).status_code == 200
    assert {one["id"]: one["reached_by"] for one in visit.get("tools")["servers"]} == before


def test_odd_requests_get_answers_of_ours(visit: Visit) -> None:
    assert visit.client.get("/console/api/nothing").status_code == 404
    assert visit.client.post("/console/api/runs", json={}).status_code == 405
    assert visit.client.post("/console/").status_code == 405
    assert visit.client.get("/console/static/%2e%2e/door.py").status_code == 404
    assert visit.client.get("/console/api/runs", params={"start": "-1"}).status_code == 422
    assert visit.client.get("/console/api/runs/none").status_code == 404
    assert visit.client.get("/console").status_code == 308


def test_files_are_kept_by_the_browser_and_asked_for_again(visit: Visit) -> None:
    path = "/console/static/console.css"
    first = visit.client.get(path)
    again = visit.client.get(path, headers={"if-none-match": first.headers["etag"]})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")


def test_looking_leaves_no_line_in_the_log_and_refusals_do(visit: Visit, served: Served) -> None:
    def lines() -> list[str]:
        calls = visit.get("calls")["calls"]
        return [f"{c['status']} {c['method']}" for c in calls if "/console/" in c["method"]]

    before = len(lines())
    visit.client.get("/console/")
    visit.get("runs")
    assert len(lines()) == before
    httpx2.get(f"{served.url}/console/api/me", headers={"x": "y"}, verify=False, timeout=60)
    visit.post("memories", {"content": ""})
    assert lines()[:2] == ["422 POST /console/api/memories", "401 GET /console/api/me"]


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("ja,en;q=0.5", "ja"),
        ("en-GB,ja;q=0.9", "en"),
        ("fr,ja;q=0.2,en;q=0.1", "ja"),
        ("", "en"),
        ("de;q=x,*", "en"),
    ],
)
def test_the_page_speaks_what_the_browser_would_rather_read(
    visit: Visit, accepted: str, language: str
) -> None:
    assert language_of(accepted) == language
    page = visit.client.get("/console/", headers={"accept-language": accepted})
    assert f'<html lang="{language}">' in page.text


@pytest.mark.case(135)
def test_the_console_keeps_its_own_door_and_every_secret(world: World) -> None:
    secrets = {"EC_TOKEN": "gateway-secret-canary", "OPENAI_API_KEY": "openai-key-canary"}
    with serving(world, **secrets) as other, Visit(other.url) as visitor:
        assert visitor.client.post("/read_file", json={"path": "README.md"}).status_code == 401
        assert visitor.client.get("/console/").status_code == 401
        assert visitor.follow(other.link).status_code == 303
        shown = visitor.get("settings")["settings"]
        assert next(one for one in shown if one["name"] == "token")["value"] == "(set)"
        paths = [route.path for route in ROUTES if route.method == "GET" and "*" not in route.path]
        assert len(paths) > 8
        for path in paths:
            assert "canary" not in str(visitor.get(path)), path


def test_the_console_is_for_this_machine_alone(world: World) -> None:
    token = {"EC_TOKEN": "x" * 20}
    for more in (("--host", "0.0.0.0"), ("--only", "router")):
        ended = evercontext("serve", "--open", *more, cwd=world.root, env=token)
        assert ended.code == 64
        assert ended.err.count("error: ") == 1
    with serving(world, "--host", "0.0.0.0", **token) as other:
        port = other.url.rsplit(":", 1)[1]
        headers = {"authorization": f"Bearer {token['EC_TOKEN']}"}
        for path in ("/console/", "/console/api/me", "/console/static/console.css"):
            url = f"http://127.0.0.1:{port}{path}"
            assert httpx2.get(url, verify=False, timeout=60).status_code == 401
            assert httpx2.get(url, headers=headers, verify=False, timeout=60).status_code == 404


@pytest.mark.case(136)
def test_the_server_ends_while_pages_are_open(world: World) -> None:
    with serving(world) as other, Visit(other.url) as visitor:
        assert visitor.follow(other.link).status_code == 303
        with visitor.stream() as messages:
            assert next(messages).event == "approvals"
            other.process.send_signal(signal.SIGTERM)
            assert list(messages) == []
            assert other.process.wait(10) == 143
    ended = evercontext("console", cwd=world.folder, env={"EC_HOME": str(world.home)})
    assert ended.code == 1
    assert "serve --open" in ended.err


def test_every_word_is_there_in_japanese() -> None:
    kept = {name: one.content.decode() for name, one in assets().items() if name.endswith(".js")}
    japanese = set(re.findall(r'"((?:[^"\\]|\\.)+)": "', kept.pop("js/words.ja.js")))
    used = {
        text for source in kept.values() for text in re.findall(r'\bt\("((?:[^"\\]|\\.)*)"', source)
    }
    assert used - japanese == set()
    assert MOST_SESSIONS < 100


def test_every_setting_is_described_in_japanese() -> None:
    told = assets()["js/settings.ja.js"].content.decode()
    described = re.findall(r'^  "(\w+)": "([^"]+)",$', told, re.MULTILINE)
    assert [name for name, _ in described] == [row.name for row in rows()]
    # Some are the English name and little else, but each has a word of Japanese.
    assert [name for name, text in described if text.isascii()] == []
