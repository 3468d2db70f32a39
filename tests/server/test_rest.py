from __future__ import annotations

import shutil
import socket
import uuid
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from evercontext.errors import ConfigError
from evercontext.server.listener import bind
from tests.server.running import Gateway, running


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    place = tmp_path_factory.mktemp("rest")
    with running(place / "root", place / "home") as gateway:
        yield gateway


@pytest.mark.contract("E9")
def test_list_files(gateway: Gateway) -> None:
    (gateway.root / "src").mkdir()
    (gateway.root / "src" / "a.py").write_text("12345")
    (gateway.root / "src" / "b.md").write_text("")
    (gateway.root / "src" / "deep").mkdir()
    (gateway.root / "src" / "tool.exe").write_text("")
    listed = gateway.post("list_files", {"path": "src"}).json()
    assert listed == {
        "files": [
            {"name": "a.py", "is_dir": False, "size": 5},
            {"name": "b.md", "is_dir": False, "size": 0},
            {"name": "deep", "is_dir": True},
        ]
    }
    only = gateway.post("list_files", {"path": "./src", "extensions": [".py"]}).json()
    assert "a.py" in [entry["name"] for entry in only["files"]]
    assert "b.md" not in [entry["name"] for entry in only["files"]]
    few = gateway.post("list_files", {"path": "src", "max_items": 1}).json()
    assert (len(few["files"]), few["truncated"]) == (1, True)
    assert gateway.post("list_files", {"path": "nowhere"}).status_code == 404
    assert gateway.post("list_files", {"path": ".."}).status_code == 400


@pytest.mark.contract("E10", "E11")
def test_write_then_read(gateway: Gateway) -> None:
    body = {"path": "new/deep/x.md", "content": "# あ\n", "mode": "create"}
    assert gateway.post("write_file", body).json() == {"status": "ok", "path": "new/deep/x.md"}
    assert gateway.post("write_file", body).status_code == 409
    assert gateway.post("read_file", {"path": "new/deep/x.md"}).json() == {"content": "# あ\n"}
    gateway.post("write_file", {**body, "mode": "append"})
    assert gateway.post("read_file", {"path": "./new/deep/x.md"}).json()["content"] == "# あ\n" * 2
    gateway.post("write_file", {**body, "content": "", "mode": "overwrite"})
    assert gateway.post("read_file", {"path": "new/deep/x.md"}).json()["content"] == ""
    assert gateway.post("read_file", {"path": "none.md"}).status_code == 404
    assert gateway.post("write_file", {"path": "x.md", "content": ""}).status_code == 422


@pytest.mark.contract("E9", "E10", "E11")
def test_openapi_declares_every_status(gateway: Gateway) -> None:
    schema = gateway.get("/openapi.json").json()
    for route in ("/list_files", "/read_file", "/write_file"):
        operation = schema["paths"][route]["post"]
        promised = {"200", "400", "401", "403", "404", "409", "413", "415", "422", "500", "507"}
        assert promised <= operation["responses"].keys()
        assert "x-trace-id" in [parameter["name"] for parameter in operation["parameters"]]
        body = operation["requestBody"]["content"]["application/json"]["schema"]
        assert "path" in body["required"]


@pytest.mark.case(58, 59)
def test_docs_need_no_script_and_no_other_site(gateway: Gateway) -> None:
    page = gateway.get("/docs")
    tags: list[str] = []

    class Collector(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append(tag)
            assert not [value for _, value in attrs if value and value.startswith("http")]

    Collector().feed(page.text)
    assert "script" not in tags
    assert "/write_file" in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


def test_metrics_count_by_route_and_status(gateway: Gateway) -> None:
    gateway.post("read_file", {"path": "counted-none.md"})
    gateway.get("/never-heard-of-it")
    text = gateway.get("/metrics").text
    assert 'evercontext_http_requests_total{method="POST",route="/read_file",status="404"}' in text
    assert 'route="other",status="404"' in text
    assert "never-heard-of-it" not in text
    assert 'evercontext_http_request_seconds_bucket{route="/read_file",le="+Inf"}' in text
    assert "evercontext_http_requests_in_progress 1" in text


@pytest.mark.contract("E25")
def test_request_of_a_client_that_left_is_still_audited(gateway: Gateway) -> None:
    trace = str(uuid.uuid4())
    head = (
        f"POST /read_file HTTP/1.1\r\nHost: {gateway.host}\r\nX-Trace-Id: {trace}\r\n"
        "Content-Length: 10\r\n\r\n"
    )
    assert gateway.exchange(head.encode() + b"{", half_close=True) == b""
    while not (line := [one for one in gateway.audit() if one["trace_id"] == trace]):
        gateway.get("/healthz")
    assert [one["status"] for one in line] == [499]


@pytest.mark.case(136)
def test_address_that_cannot_be_had_is_one_error() -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} on 127.0.0.1 is in use"):
            bind("127.0.0.1", port)
    with pytest.raises(ConfigError, match="EC_HOST"):
        bind("203.0.113.7", 0)


def test_off_loopback_without_a_token_does_not_start(tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match="ended with 1"),
        running(tmp_path / "root", tmp_path / "home", {"EC_HOST": "0.0.0.0"}),
    ):
        pass


@pytest.mark.case(55)
def test_off_loopback_with_a_token_is_called_by_allowed_names(tmp_path: Path) -> None:
    environment = {
        "EC_HOST": "0.0.0.0",
        "EC_TOKEN": "the-right-token",
        "EC_ALLOWED_HOSTS": "box.local:80",
    }
    with running(tmp_path / "root", tmp_path / "home", environment) as started:
        local = f"http://127.0.0.1:{started.port}"
        token = {"authorization": "Bearer the-right-token"}

        def answered(**headers: str) -> int:
            reply = started.client.post(
                f"{local}/list_files", json={"path": "."}, headers={**token, **headers}
            )
            return reply.status_code

        assert answered() == 200
        assert answered(host="box.local:80") == 200
        assert answered(host=f"0.0.0.0:{started.port}") == 403
        assert answered(authorization="Bearer wrong") == 401


@pytest.mark.contract("E33")
def test_server_told_of_another_gateway_still_serves_its_own_tree(tmp_path: Path) -> None:
    environment = {"EC_MCP_URL": "http://127.0.0.1:9"}
    with running(tmp_path / "root", tmp_path / "home", environment) as started:
        assert started.post("list_files", {"path": "."}).status_code == 200


def test_answers_are_not_held_back_by_nagle() -> None:
    with bind("127.0.0.1", 0) as bound:
        assert bound.proto == socket.IPPROTO_TCP


def test_contents_stand_in_the_log_once(gateway: Gateway) -> None:
    """X14: in the step and in the diff they took twice the room."""
    content = "a line that is only here 4711\n" * 100
    body = {"path": "once.md", "content": content, "mode": "create"}
    assert gateway.post("write_file", body).status_code == 200
    log = "".join(path.read_text() for path in (gateway.home / "traces").glob("*.jsonl"))
    assert log.count("only here 4711") == 100


def test_logs_removed_while_serving_go_on_in_new_files(gateway: Gateway) -> None:
    """X13: 200 for writes that were audited nowhere and could not be undone."""
    gateway.post("write_file", {"path": "first.md", "content": "1", "mode": "create"})
    shutil.rmtree(gateway.home / "traces")
    shutil.rmtree(gateway.home / "journal")
    answer = gateway.post("write_file", {"path": "second.md", "content": "2", "mode": "create"})
    assert answer.status_code == 200
    assert [line["path"] for line in gateway.audit()] == ["second.md"]
    journals = b"".join(path.read_bytes() for path in (gateway.home / "journal").rglob("*.seg"))
    assert b"second.md" in journals
