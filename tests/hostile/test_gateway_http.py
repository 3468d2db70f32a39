"""The gateway's rows over HTTP: a real server, and raw sockets where a client would be polite."""

from __future__ import annotations

import gzip
import json
import os
import random
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from tests.server.running import Gateway, receive, running, status_of

SECRET = "SECRET-CANARY"
LIMIT = 524_288


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    place = tmp_path_factory.mktemp("gateway")
    (place / "root-evil").mkdir()
    (place / "root-evil" / "s.txt").write_text(SECRET)
    with running(place / "root", place / "home") as gateway:
        yield gateway


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    place = tmp_path_factory.mktemp("guarded")
    with running(place / "root", place / "home", {"EC_TOKEN": TOKEN}) as gateway:
        yield gateway


TOKEN = "correct-horse-battery-staple"


def raw(gateway: Gateway, body: bytes, *, route: str = "read_file", **headers: str) -> bytes:
    """One POST as bytes; ``headers`` replace the usual ones."""
    named = {
        "Host": gateway.host,
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
    } | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in named.items() if value]
    head = "\r\n".join([f"POST /{route} HTTP/1.1", *lines])
    return head.encode("latin-1") + b"\r\n\r\n" + body


def write(gateway: Gateway, path: str, content: str, mode: str = "overwrite") -> httpx2.Response:
    return gateway.post("write_file", {"path": path, "content": content, "mode": mode})


def read(gateway: Gateway, path: str) -> httpx2.Response:
    return gateway.post("read_file", {"path": path})


REFUSED_PATHS = [
    *[pytest.param("../root-evil/s.txt", {400}, marks=pytest.mark.case(1, 7))],
    pytest.param("a/../../root-evil/s.txt", {400}, marks=pytest.mark.case(2)),
    pytest.param("/etc/passwd", {400}, marks=pytest.mark.case(3)),
    pytest.param("//etc/passwd", {400}, marks=pytest.mark.case(3)),
    pytest.param("~/x.txt", {400}, marks=pytest.mark.case(4)),
    pytest.param("..\\x.txt", {400}, marks=pytest.mark.case(5)),
    pytest.param("a\\..\\..\\x.txt", {400}, marks=pytest.mark.case(5)),
    pytest.param("\\\\srv\\x.txt", {400}, marks=pytest.mark.case(5)),
    pytest.param("C:/x.txt", {400}, marks=pytest.mark.case(6)),
    pytest.param("keep.txt:ads.txt", {400}, marks=pytest.mark.case(6)),
    pytest.param("a\0.txt", {400}, marks=pytest.mark.case(8)),
    pytest.param("a\nb.txt", {400}, marks=pytest.mark.case(9)),
    pytest.param("a\x1b[2J.txt", {400}, marks=pytest.mark.case(9)),
    pytest.param("a\x7f.txt", {400}, marks=pytest.mark.case(9)),
    pytest.param("a\u202etxt.txt", {400}, marks=pytest.mark.case(10)),
    pytest.param("a\u200b.txt", {400}, marks=pytest.mark.case(10)),
    pytest.param("\ufeffa.txt", {400}, marks=pytest.mark.case(10)),
    pytest.param("e\u0301.txt", {400}, marks=pytest.mark.case(11)),
    pytest.param("/proc/self/environ", {400}, marks=pytest.mark.case(17)),
    pytest.param("", {400, 422}, marks=pytest.mark.case(24)),
    pytest.param(".", {400, 422}, marks=pytest.mark.case(24)),
    pytest.param("///", {400, 422}, marks=pytest.mark.case(24)),
    pytest.param("x" * 256 + ".txt", {400, 422}, marks=pytest.mark.case(25)),
    pytest.param("あ" * 90 + ".txt", {400, 422}, marks=pytest.mark.case(25)),
    pytest.param("d/" * 600 + "x.txt", {400, 422}, marks=pytest.mark.case(25)),
    pytest.param("CON.txt", {400}, marks=pytest.mark.case(26)),
    pytest.param("nul.py", {400}, marks=pytest.mark.case(26)),
    pytest.param("x.txt.", {400}, marks=pytest.mark.case(26)),
    pytest.param(".git/hooks/pre-commit.py", {403}, marks=pytest.mark.case(27)),
    pytest.param(".GIT/hooks/x.py", {403}, marks=pytest.mark.case(27)),
    pytest.param("a/.git/config.txt", {403}, marks=pytest.mark.case(27)),
    pytest.param("\uff0egit/config.txt", {400, 403}, marks=pytest.mark.case(27)),
    pytest.param(".env", {403}, marks=pytest.mark.case(28)),
    pytest.param(".env.txt", {403}, marks=pytest.mark.case(28)),
    pytest.param(".vscode/tasks.json", {403}, marks=pytest.mark.case(28)),
    pytest.param(".mcp.json", {403}, marks=pytest.mark.case(28)),
    pytest.param(".evercontext/x.json", {403}, marks=pytest.mark.case(28)),
    pytest.param("x.exe", {400}, marks=pytest.mark.case(29)),
    pytest.param("noextension", {400}, marks=pytest.mark.case(29)),
    pytest.param("x.py.exe", {400}, marks=pytest.mark.case(29)),
    pytest.param("x.py/", {400}, marks=pytest.mark.case(29)),
]


@pytest.mark.contract("E9", "E10", "E11", "E21", "E22")
@pytest.mark.parametrize(("path", "statuses"), REFUSED_PATHS)
def test_path_is_refused_by_reads_and_writes_alike(
    gateway: Gateway, path: str, statuses: set[int]
) -> None:
    for answer in (read(gateway, path), write(gateway, path, "x", "create")):
        assert answer.status_code in statuses, answer.text
        assert SECRET not in answer.text
        assert answer.json()["error"]["code"]
        assert answer.json()["trace_id"] == answer.headers["x-trace-id"]
    assert (gateway.root.parent / "root-evil" / "s.txt").read_text() == SECRET


@pytest.mark.case(13, 14, 15, 16)
def test_links_lead_nowhere(gateway: Gateway) -> None:
    outside = gateway.root.parent / "root-evil"
    (gateway.root / "link.txt").symlink_to(outside / "s.txt")
    (gateway.root / "linkdir").symlink_to(outside)
    (gateway.root / "dangling.txt").symlink_to(outside / "new.txt")
    (gateway.root / "loop.txt").symlink_to(gateway.root / "loop.txt")
    assert read(gateway, "link.txt").status_code == 400
    assert read(gateway, "linkdir/s.txt").status_code in (400, 404)
    assert write(gateway, "linkdir/n.txt", "x", "create").status_code in (400, 404)
    assert write(gateway, "dangling.txt", "x", "overwrite").status_code == 400
    assert write(gateway, "dangling.txt", "x", "create").status_code in (400, 409)
    assert read(gateway, "loop.txt").status_code == 400
    assert sorted(path.name for path in outside.iterdir()) == ["s.txt"]


@pytest.mark.case(20, 22, 23)
def test_odd_kinds_of_files_are_refused_without_waiting(gateway: Gateway) -> None:
    os.link(gateway.root.parent / "root-evil" / "s.txt", gateway.root / "hard.txt")
    os.mkfifo(gateway.root / "fifo.txt")
    (gateway.root / "dir.txt").mkdir()
    (gateway.root / "plain.txt").write_text("x")
    assert read(gateway, "hard.txt").status_code == 403
    assert read(gateway, "fifo.txt").status_code == 400
    assert read(gateway, "dir.txt").status_code == 400
    assert gateway.post("list_files", {"path": "plain.txt"}).status_code == 404
    assert gateway.post("list_files", {"path": "nowhere"}).status_code == 404


@pytest.mark.case(30, 31)
@pytest.mark.contract("E23")
def test_limit_is_exact_in_bytes(gateway: Gateway) -> None:
    assert write(gateway, "edge.txt", "a" * LIMIT).status_code == 200
    assert len(read(gateway, "edge.txt").json()["content"]) == LIMIT
    for content in ("a" * (LIMIT + 1), "あ" * 174_763):
        assert write(gateway, "edge.txt", content).status_code == 413
    assert (gateway.root / "edge.txt").read_bytes() == b"a" * LIMIT
    (gateway.root / "over.txt").write_bytes(b"a" * (LIMIT + 1))
    assert read(gateway, "over.txt").status_code == 413


@pytest.mark.case(30)
def test_content_in_its_longest_spelling_still_fits(gateway: Gateway) -> None:
    body = b'{"path": "long.txt", "mode": "overwrite", "content": "' + rb"\u0041" * LIMIT + b'"}'
    assert status_of(gateway.exchange(raw(gateway, body, route="write_file"))) == 200
    assert (gateway.root / "long.txt").stat().st_size == LIMIT


@pytest.mark.case(32)
def test_append_over_the_limit_changes_nothing(gateway: Gateway) -> None:
    (gateway.root / "app.txt").write_bytes(b"b" * (LIMIT - 1))
    assert write(gateway, "app.txt", "c", "append").status_code == 200
    assert write(gateway, "app.txt", "d", "append").status_code == 413
    assert (gateway.root / "app.txt").read_bytes() == b"b" * (LIMIT - 1) + b"c"


@pytest.mark.case(34)
def test_endless_chunked_body_is_cut_and_never_held(gateway: Gateway) -> None:
    before = gateway.resident()
    chunk = b"10000\r\n" + b"a" * 65_536 + b"\r\n"
    head = raw(gateway, b"", Content_Length="", Transfer_Encoding="chunked")
    sent = 0
    with gateway.connect() as link:
        link.sendall(head)
        try:
            while sent < 64 * 1_048_576:
                link.sendall(chunk)
                sent += 65_536
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = receive(link)
    assert status_of(answer) in (413, 0)
    assert sent < 16 * 1_048_576
    assert gateway.resident() - before < 8 * 1_048_576
    assert gateway.audit()[-1]["status"] == 413


@pytest.mark.case(35)
def test_declared_size_is_enough_to_be_refused(gateway: Gateway) -> None:
    answer = gateway.exchange(raw(gateway, b"a" * 900_000, Content_Length="8388608"))
    assert status_of(answer) == 413
    assert b"connection: close" in answer


@pytest.mark.case(36)
@pytest.mark.parametrize(
    "framing",
    [
        "Content-Length: -1",
        "Content-Length: +2",
        "Content-Length: 0x2",
        "Content-Length: 2, 2",
        "Content-Length: 2\r\nContent-Length: 3",
        "Content-Length: 2\r\nContent-Length: 2",
        "Content-Length: 2\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 2",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding : chunked",
        "Content-Length: 99999999999999999999999",
    ],
)
def test_lie_about_the_length_ends_the_connection(gateway: Gateway, framing: str) -> None:
    smuggled = raw(
        gateway, b'{"path": "smuggled.txt", "content": "x", "mode": "create"}', route="write_file"
    )
    head = (
        f"POST /read_file HTTP/1.1\r\nHost: {gateway.host}\r\n"
        f"Content-Type: application/json\r\n{framing}\r\n\r\n"
    )
    with gateway.connect() as link:
        link.sendall(head.encode() + b"{}" + smuggled)
        answer = b""
        while chunk := _recv(link):
            answer += chunk
    assert status_of(answer) in (400, 413)
    assert answer.count(b"HTTP/1.1") == 1
    assert not (gateway.root / "smuggled.txt").exists()


def _recv(link: socket.socket) -> bytes:
    try:
        return link.recv(65536)
    except ConnectionResetError:
        return b""


@pytest.mark.case(36)
def test_short_length_leaves_no_second_request(gateway: Gateway) -> None:
    body = b'{"path": "short.txt", "content": "x", "mode": "create"}'
    answer = gateway.exchange(raw(gateway, body, route="write_file", Content_Length="10"))
    assert status_of(answer) in (400, 422)
    assert not (gateway.root / "short.txt").exists()


@pytest.mark.case(36)
def test_long_length_writes_nothing(gateway: Gateway) -> None:
    body = b'{"path": "long-lie.txt", "content": "x", "mode": "create"}'
    request = raw(gateway, body, route="write_file", Content_Length=str(len(body) + 10))
    assert gateway.exchange(request, half_close=True) == b""
    assert not (gateway.root / "long-lie.txt").exists()


@pytest.mark.case(38)
@pytest.mark.contract("E10", "E24")
@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80", "é".encode("utf-16"), b"ok \x80"]
)
def test_file_that_is_not_utf8_is_415(gateway: Gateway, data: bytes) -> None:
    (gateway.root / "bytes.txt").write_bytes(data)
    assert read(gateway, "bytes.txt").status_code == 415


@pytest.mark.case(39)
def test_lone_surrogate_and_raw_byte_are_refused(gateway: Gateway) -> None:
    surrogate = rb'{"path": "s.txt", "mode": "create", "content": "\ud800"}'
    assert status_of(gateway.exchange(raw(gateway, surrogate, route="write_file"))) in (415, 422)
    bad_path = rb'{"path": "\ud800.txt"}'
    assert status_of(gateway.exchange(raw(gateway, bad_path))) in (400, 415, 422)
    byte = b'{"path": "s.txt", "mode": "create", "content": "\xff"}'
    assert status_of(gateway.exchange(raw(gateway, byte, route="write_file"))) in (400, 422)
    assert not (gateway.root / "s.txt").exists()


@pytest.mark.case(40)
def test_bytes_survive_a_round_trip(gateway: Gateway) -> None:
    data = b"\xef\xbb\xbfone\r\ntwo\rthree\n\x0c\x1bfour"
    (gateway.root / "same.txt").write_bytes(data)
    content = read(gateway, "same.txt").json()["content"]
    assert write(gateway, "same.txt", content).status_code == 200
    assert (gateway.root / "same.txt").read_bytes() == data


@pytest.mark.case(41, 43)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"NaN",
        b'{"path": NaN}',
        b'{"path": 1e999}',
        b'{"path": 1}',
        b'{"path": null}',
        b'{"path": ["a.txt"]}',
        b'{"path": "a.txt", "extra": 1}',
        b'{"path": "a.txt", "path": "b.txt"}',
        b'{"path": "a.txt"} {}',
        b'\xef\xbb\xbf{"path": "a.txt"}',
        '{"path": "a.txt"}'.encode("utf-16"),
        b'{"path": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"path":' * 100_000,
        b'{"path": ' + b"[" * 100 + b"]" * 100 + b"}",
    ],
    ids=lambda body: repr(body[:24]),
)
def test_what_is_not_the_schema_is_422(gateway: Gateway, body: bytes) -> None:
    answer = gateway.exchange(raw(gateway, body))
    assert status_of(answer) == 422
    assert gateway.get("/healthz").status_code == 200


@pytest.mark.case(44)
def test_one_of_64_creates_wins(gateway: Gateway) -> None:
    def create(n: int) -> int:
        return write(gateway, "race.txt", f"{n}\n" * 1000, "create").status_code

    with ThreadPoolExecutor(64) as pool:
        statuses = list(pool.map(create, range(64)))
    assert sorted(statuses) == [200] + [409] * 63
    winner = statuses.index(200)
    assert (gateway.root / "race.txt").read_text() == f"{winner}\n" * 1000


@pytest.mark.case(53)
@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        "Bearer ",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer tökén",
        "Bearer " + "x" * 60_000,
        "Bearer " + "x" * 1_048_576,
    ],
    ids=lambda value: str(value)[:12],
)
def test_wrong_token_is_401_before_the_body_is_read(
    guarded: Gateway, authorization: str | None
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    answer = guarded.exchange(raw(guarded, b"not json", **headers))
    assert status_of(answer) == 401
    assert b"unauthorized" in answer


@pytest.mark.case(53)
def test_right_token_opens_the_door(guarded: Gateway) -> None:
    answer = guarded.post("list_files", {"path": "."}, Authorization=f"Bearer {TOKEN}")
    assert answer.status_code == 200
    twice = raw(guarded, b"{}", Authorization=f"Bearer {TOKEN}\r\nAuthorization: Bearer x")
    assert status_of(guarded.exchange(twice)) == 401
    assert guarded.audit()[0]["principal"] in ("EC_TOKEN", None)


@pytest.mark.case(54)
def test_token_in_the_query_is_no_token_and_never_logged(guarded: Gateway) -> None:
    answer = guarded.post(f"list_files?token={TOKEN}", {"path": "."})
    assert answer.status_code == 401
    written = b"".join(path.read_bytes() for path in (guarded.home / "traces").glob("*.jsonl"))
    assert TOKEN.encode() not in written


def test_health_needs_no_token_and_says_little(guarded: Gateway) -> None:
    answer = guarded.get("/healthz")
    assert answer.status_code == 200
    assert set(answer.json()) == {"status", "version"}
    assert guarded.get("/metrics").status_code == 401


@pytest.mark.case(55)
@pytest.mark.parametrize(
    "host",
    [
        "evil.example:{port}",
        "0.0.0.0:{port}",
        "0.0.0.0",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:{port}.evil.example",
        "127.0.0.1:1",
        "user@127.0.0.1:{port}",
        "127.0.0.1:{port}\r\nHost: evil.example",
        "",
    ],
)
def test_foreign_host_is_403_before_token_and_body(guarded: Gateway, host: str) -> None:
    request = raw(guarded, b"not json", Host=host.format(port=guarded.port))
    answer = guarded.exchange(request)
    assert status_of(answer) == 403
    assert b"foreign_host" in answer


@pytest.mark.case(55)
@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
def test_own_names_are_served(gateway: Gateway, name: str) -> None:
    request = raw(gateway, b'{"path": "."}', route="list_files", Host=f"{name}:{gateway.port}")
    assert status_of(gateway.exchange(request)) == 200


@pytest.mark.case(56)
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1:{port}.evil.example",
        "http://localhost:3000",
        "https://127.0.0.1:{port}",
        "file://",
        "",
    ],
)
def test_foreign_origin_is_403_without_cors(gateway: Gateway, origin: str) -> None:
    value = origin.format(port=gateway.port) or " "
    request = raw(gateway, b'{"path": "."}', route="list_files", Origin=value)
    answer = gateway.exchange(request)
    assert status_of(answer) == 403
    assert b"access-control" not in answer.lower()


@pytest.mark.case(56, 59)
def test_own_origin_is_served_and_other_sites_are_not(gateway: Gateway) -> None:
    own = gateway.post("list_files", {"path": "."}, Origin=gateway.url)
    assert own.status_code == 200
    assert not [name for name in own.headers if name.startswith("access-control")]
    for site in ("cross-site", "same-site"):
        page = gateway.get("/docs", Sec_Fetch_Site=site)
        assert page.status_code == 403
    preflight = gateway.client.options(
        "/write_file",
        headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"},
    )
    assert preflight.status_code == 403


@pytest.mark.case(57)
@pytest.mark.parametrize(
    "media",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "",
        "application/json; charset=utf-16",
        "application/jsonp",
    ],
)
def test_simple_request_of_a_page_has_no_effect(gateway: Gateway, media: str) -> None:
    body = b'{"path": "csrf.txt", "content": "x", "mode": "create"}'
    answer = gateway.exchange(raw(gateway, body, route="write_file", Content_Type=media))
    assert status_of(answer) == 415
    assert not (gateway.root / "csrf.txt").exists()


@pytest.mark.case(57)
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "GZIP, identity"])
@pytest.mark.parametrize("route", ["write_file", "mcp"])
def test_a_compressed_body_is_refused_and_never_unpacked(
    gateway: Gateway, coding: str, route: str
) -> None:
    body = gzip.compress(b'{"path": "zip.txt", "content": "x", "mode": "create"}')
    headers = {"Content_Type": "application/json", "Content_Encoding": coding}
    answer = gateway.exchange(raw(gateway, body, route=route, **headers))
    assert status_of(answer) == 415
    assert b"without Content-Encoding" in answer
    assert not (gateway.root / "zip.txt").exists()


def test_a_body_that_says_it_is_as_it_is_is_read(gateway: Gateway) -> None:
    body = {"path": "identity.txt", "content": "x", "mode": "create"}
    assert gateway.post("write_file", body, content_encoding="identity").status_code == 200


@pytest.mark.case(60)
@pytest.mark.contract("E12", "E25")
def test_log_injection_stays_one_escaped_line(gateway: Gateway) -> None:
    odd = '"}\t\x80\x9b31m' + "z" * 5000
    answer = gateway.exchange(
        raw(
            gateway,
            json.dumps({"path": 'x\r\n{"type":"audit"}\x1b' + "p" * 5000}).encode(),
            x_trace_id=odd,
        )
    )
    assert status_of(answer) in (400, 422)
    line = gateway.audit()[-1]
    assert len(line["given_trace_id"]) <= 64
    assert len(line["path"]) <= 1024
    assert line["given_trace_id"].isprintable()
    assert line["path"].isprintable()
    assert str(uuid.UUID(line["trace_id"])) == line["trace_id"]


@pytest.mark.case(60)
@pytest.mark.parametrize("value", ["a\x1b[31m", "a\rb", "a\nb: c\x00"])
def test_control_characters_in_a_header_are_no_http(gateway: Gateway, value: str) -> None:
    answer = gateway.exchange(raw(gateway, b'{"path": "."}', x_trace_id=value))
    assert status_of(answer) == 400
    assert gateway.audit()[-1]["status"] == 400


@pytest.mark.case(36)
def test_answer_to_a_whole_request_is_not_mixed_with_a_refusal(gateway: Gateway) -> None:
    good = raw(gateway, b'{"path": "."}', route="list_files")
    with gateway.connect() as link:
        link.sendall(good + b"GARBAGE\r\n\r\n")
        answer = b""
        while chunk := _recv(link):
            answer += chunk
    assert status_of(answer) == 200
    assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.case(36)
def test_requests_in_a_row_are_answered_in_a_row(gateway: Gateway) -> None:
    good = raw(gateway, b'{"path": "."}', route="list_files")
    bad = raw(gateway, b'{"path": "nowhere"}', route="list_files", Connection="close")
    with gateway.connect() as link:
        link.sendall(good + good + bad)
        answer = b""
        while chunk := _recv(link):
            answer += chunk
    found = [part.split(b" ")[1] for part in answer.split(b"HTTP/1.1")[1:]]
    assert found == [b"200", b"200", b"404"]


@pytest.mark.case(61)
@pytest.mark.contract("E12")
@pytest.mark.parametrize("given", [None, "", "nonsense", "{" + "1" * 32 + "}", "1" * 32])
def test_odd_trace_id_is_replaced_and_returned(gateway: Gateway, given: str | None) -> None:
    headers = {} if given is None else {"x_trace_id": given}
    answer = gateway.post("list_files", {"path": "."}, **headers)
    made = answer.headers["x-trace-id"]
    assert answer.status_code == 200
    assert str(uuid.UUID(made)) == made
    assert made != given
    assert gateway.audit()[-1]["trace_id"] == made


@pytest.mark.contract("E12", "E25")
def test_audit_line_has_the_promised_fields_and_no_content(gateway: Gateway) -> None:
    trace_id = str(uuid.uuid4())
    gateway.post(
        "write_file",
        {"path": "audited.txt", "content": "あ secret word", "mode": "overwrite"},
        x_trace_id=trace_id.upper(),
    )
    line = next(line for line in gateway.audit() if line["trace_id"] == trace_id)
    assert line["method"] == "POST /write_file"
    assert line["path"] == "audited.txt"
    assert line["size"] == len("あ secret word".encode())
    assert line["status"] == 200
    assert line["door"] == "rest"
    assert "secret word" not in json.dumps(line)


@pytest.mark.case(63)
def test_wrong_method_and_unknown_route(gateway: Gateway) -> None:
    assert gateway.get("/write_file").status_code == 405
    assert gateway.get("/write_file").headers["allow"] == "POST"
    assert gateway.post("nowhere", {}).status_code == 404
    assert gateway.get("//etc/passwd").status_code == 404
    assert gateway.get("/read_file/../metrics").status_code in (200, 404)
    assert gateway.post("read_file/", {"path": "a.txt"}).status_code == 404
    assert gateway.get("/healthz/").status_code == 404
    override = {"X-HTTP-Method-Override": "POST", "X-Method-Override": "POST"}
    assert gateway.client.get("/write_file", headers=override).status_code == 405


@pytest.mark.case(64)
@pytest.mark.slow
def test_slow_clients_are_dropped_and_disturb_nobody(gateway: Gateway) -> None:
    links = [gateway.connect() for _ in range(200)]
    started = time.monotonic()
    for link in links:
        link.sendall(b"POST /read_file HTTP/1.1\r\nHost: ")
    open_links = set(links)
    while open_links and time.monotonic() - started < 60:
        assert gateway.get("/healthz").status_code == 200
        for link in list(open_links):
            if _was_closed(link):
                open_links.discard(link)
            else:
                _trickle(link)
        time.sleep(0.5)
    for link in links:
        link.close()
    assert not open_links, f"{len(open_links)} slow clients still connected"


def _was_closed(link: socket.socket) -> bool:
    link.setblocking(False)
    try:
        return link.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    finally:
        link.settimeout(5)


def _trickle(link: socket.socket) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):
        link.send(b"1")


@pytest.mark.case(64)
def test_head_without_end_is_not_collected(gateway: Gateway) -> None:
    before = gateway.resident()
    with gateway.connect() as link:
        link.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        try:
            for _ in range(2000):
                link.sendall(b"X: " + b"y" * 8000 + b"\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass
        receive(link)
    assert gateway.resident() - before < 8 * 1_048_576


@pytest.mark.case(65)
@pytest.mark.slow
def test_huge_directory_is_cut(gateway: Gateway) -> None:
    crowd = gateway.root / "crowd"
    crowd.mkdir()
    for n in range(100_000):
        os.close(os.open(crowd / f"f{n:06}.txt", os.O_CREAT | os.O_WRONLY))
    answer = gateway.post("list_files", {"path": "crowd", "max_items": 50})
    assert answer.status_code == 200
    assert len(answer.json()["files"]) == 50
    assert answer.json()["truncated"] is True


@pytest.mark.case(65)
def test_undecodable_names_are_escaped(gateway: Gateway) -> None:
    odd = gateway.root / "odd"
    odd.mkdir()
    os.close(os.open(bytes(odd) + b"/a\xff\x1b.txt", os.O_CREAT | os.O_WRONLY))
    answer = gateway.post("list_files", {"path": "odd"})
    assert answer.status_code == 200
    for entry in answer.json()["files"]:
        entry["name"].encode("utf-8")
        assert entry["name"].isprintable()


@pytest.mark.case(136)
def test_port_in_use_is_one_clear_error(gateway: Gateway, tmp_path: Path) -> None:
    environment = {
        "EC_PORT": str(gateway.port),
        "EC_APP_ROOT": str(tmp_path),
        "EC_HOME": str(tmp_path / "home"),
        "PATH": os.environ["PATH"],
    }
    second = subprocess.run(gateway.process.args, env=environment, capture_output=True, text=True)
    assert second.returncode == 1
    assert f"port {gateway.port}" in second.stderr
    assert "EC_PORT" in second.stderr
    assert "Traceback" not in second.stderr


@pytest.mark.case(136)
@pytest.mark.parametrize(("number", "code"), [(15, 143), (2, 130)], ids=["SIGTERM", "SIGINT"])
def test_signal_stops_cleanly_with_work_in_flight(tmp_path: Path, number: int, code: int) -> None:
    with running(tmp_path / "root", tmp_path / "home") as gateway:
        stop, acknowledged = threading.Event(), []

        def work(n: int) -> None:
            while not stop.is_set():
                name = f"{n}-{uuid.uuid4().hex}.txt"
                try:
                    if write(gateway, name, name, "create").status_code == 200:
                        acknowledged.append(name)
                except httpx2.TransportError:
                    return

        workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        idle = gateway.connect()
        for worker in workers:
            worker.start()
        while len(acknowledged) < 8:
            assert gateway.process.poll() is None
            time.sleep(0.02)
        assert gateway.stop(number) == code
        stop.set()
        for worker in workers:
            worker.join()
        idle.close()
        assert acknowledged
        for name in acknowledged:
            assert (gateway.root / name).read_text() == name


@pytest.mark.slow
@pytest.mark.case(51)
def test_kill_never_loses_an_acknowledged_write(tmp_path: Path) -> None:
    source = random.Random(5)
    expected: dict[str, str] = {}
    for round_ in range(4):
        with running(tmp_path / "root", tmp_path / "home") as gateway:
            assert not list((tmp_path / "root").rglob(".ec-*.tmp"))
            for name, content in expected.items():
                assert read(gateway, name).json()["content"] == content
            victim = threading.Timer(source.uniform(0.0, 0.1), gateway.process.kill)
            pending, content = "", ""
            with suppress(httpx2.TransportError):
                for number in range(1000):
                    pending = f"f{source.randrange(5)}.txt"
                    content = f"{round_} {source.random()}\n" * 2000
                    assert write(gateway, pending, content).status_code == 200
                    expected[pending] = content
                    if number == 3:
                        victim.start()
            victim.join()
        # The one write in flight may or may not have happened, but whole.
        path = tmp_path / "root" / pending
        if path.exists() and path.read_text() != expected.get(pending):
            assert path.read_text() == content
            expected[pending] = content


@pytest.mark.case(139)
def test_server_connects_to_nothing_by_itself(tmp_path: Path) -> None:
    with running(tmp_path / "root", tmp_path / "home") as gateway:
        write(gateway, "a.txt", "x")
        read(gateway, "a.txt")
        gateway.get("/docs")
        inodes = {
            os.readlink(link).removeprefix("socket:[").rstrip("]")
            for link in Path(f"/proc/{gateway.process.pid}/fd").iterdir()
            if _is_socket(link)
        }
        remote = [
            fields[2]
            for table in ("tcp", "udp")
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
            if (fields := line.split())[9] in inodes
        ]
    assert all(address.startswith(("0100007F:", "00000000:")) for address in remote)


def _is_socket(link: Path) -> bool:
    try:
        return os.readlink(link).startswith("socket:[")
    except OSError:
        return False


@pytest.mark.case(47)
def test_full_disk_is_507_and_keeps_the_old_content(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    if not _mounted(root, "size=256k"):
        pytest.skip("needs root to mount a small disk")
    try:
        (root / "old.txt").write_text("old")
        with running(root, tmp_path / "home") as gateway:
            assert write(gateway, "old.txt", "x" * 400_000).status_code == 507
            assert read(gateway, "old.txt").json()["content"] == "old"
            assert write(gateway, "small.txt", "fits", "create").status_code == 200
        assert sorted(path.name for path in root.iterdir()) == ["old.txt", "small.txt"]
    finally:
        subprocess.run(["umount", str(root)], check=True)


@pytest.mark.case(49)
def test_read_only_disk_is_403_and_still_readable(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    if not _mounted(root, "size=256k"):
        pytest.skip("needs root to mount a small disk")
    try:
        (root / "old.txt").write_text("old")
        subprocess.run(["mount", "-o", "remount,ro", str(root)], check=True)
        with running(root, tmp_path / "home") as gateway:
            answer = write(gateway, "old.txt", "new")
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "read_only")
            assert read(gateway, "old.txt").json()["content"] == "old"
    finally:
        subprocess.run(["umount", str(root)], check=True)


@pytest.mark.slow
@pytest.mark.contract("E25")
def test_no_write_without_an_audit_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    traces = home / "traces"
    traces.mkdir(parents=True)
    if not _mounted(traces, "size=64k"):
        pytest.skip("needs root to mount a small disk")
    try:
        with running(tmp_path / "root", home) as gateway:
            assert write(gateway, "before.txt", "x", "create").status_code == 200
            (traces / "filler").write_bytes(b"")
            with (traces / "filler").open("wb", buffering=0) as filler:
                try:
                    while True:
                        filler.write(b"x" * 512)
                except OSError:
                    pass
            # A name as long as a page of the disk: the last page of the log has no room for it.
            answer = write(gateway, "/".join(["d" * 200] * 20) + "/after.txt", "x", "create")
            assert (answer.status_code, answer.json()["error"]["code"]) == (
                503,
                "audit_unavailable",
            )
            assert not (gateway.root / ("d" * 200)).exists()
            assert read(gateway, "before.txt").status_code == 200
    finally:
        subprocess.run(["umount", str(traces)], check=True)


def _mounted(place: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0


def test_a_request_to_become_a_websocket_is_answered_at_once(gateway: Gateway) -> None:
    """It was held open without an answer, past every limit. What follows its head is no body."""
    with gateway.connect() as link:
        link.sendall(raw(gateway, b'{"path": "a"}', Connection="Upgrade", Upgrade="websocket"))
        answer = receive(link)
    assert status_of(answer) == 422
