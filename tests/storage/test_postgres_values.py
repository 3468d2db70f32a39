from __future__ import annotations

import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.errors import DiskFull, EverContextError, StoreClash, StoreGone, StoreTimeout
from evercontext.storage.postgres import PostgresStore
from evercontext.storage.postgres_values import incoming, meaning_of, numbered, outgoing
from evercontext.storage.store import LOCKED_OUT


def test_marks_get_numbers_except_inside_strings() -> None:
    assert (
        numbered("a = ? AND b = '?''?' AND c IN (?, ?)")
        == "a = $1 AND b = '?''?' AND c IN ($2, $3)"
    )


@given(st.text(st.sampled_from("a\0\U000f00fe01日")))
def test_any_text_comes_back_and_none_is_sent_with_a_nul(text: str) -> None:
    [sent] = outgoing([text])
    assert "\0" not in sent
    assert incoming([{"x": sent}]) == [{"x": text}]


def test_truth_is_a_number_and_no_number_is_too_large() -> None:
    assert outgoing([True, None, b"x", 1.5]) == [1, None, b"x", 1.5]
    with pytest.raises(OverflowError):
        outgoing([2**63])


@pytest.mark.case(122)
@pytest.mark.parametrize(
    ("error", "meant"),
    [
        (psycopg.errors.SerializationFailure(), StoreClash),
        (psycopg.errors.DeadlockDetected(), StoreClash),
        (psycopg.errors.AdminShutdown(), StoreGone),
        (psycopg.errors.CannotConnectNow(), StoreGone),
        (psycopg.errors.QueryCanceled(), StoreTimeout),
        (psycopg.errors.DiskFull(), DiskFull),
    ],
)
def test_what_the_server_means(error: psycopg.Error, meant: type[EverContextError]) -> None:
    assert type(meaning_of(error)) is meant


def refusal(severity: str, code: str, words: str) -> bytes:
    """An ``ErrorResponse`` as a server sends it in its own language."""
    fields = ((b"S", severity), (b"V", "FATAL"), (b"C", code), (b"M", words))
    body = b"".join(name + value.encode() + b"\0" for name, value in fields) + b"\0"
    return b"E" + struct.pack("!I", len(body) + 4) + body


@contextmanager
def speaking(answer: bytes, *, password: bool) -> Iterator[str]:
    """A server that asks for a password or does not, then says ``answer`` and hangs up."""

    class Meeting(socketserver.StreamRequestHandler):
        def packet(self) -> bytes:
            length = int.from_bytes(self.rfile.read(4))
            return self.rfile.read(max(0, length - 4))

        def handle(self) -> None:
            while (asked := self.packet()) and asked[:2] != b"\0\3":
                self.wfile.write(b"N")  # no encryption, of whichever kind
            if password:
                self.wfile.write(b"R" + struct.pack("!II", 8, 3))
                self.rfile.read(1)
                self.packet()
            with suppress(ConnectionError):
                self.wfile.write(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Meeting) as server:
        listening = threading.Thread(target=server.serve_forever, args=(0.01,))
        listening.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}/db"
        finally:
            server.shutdown()
            listening.join()


WRONG = refusal("致命的エラー", "28P01", 'ユーザー"ann"のパスワード認証に失敗しました')
STARTING = "the database system is starting up"


@pytest.mark.case(122)
@pytest.mark.parametrize(
    ("answer", "who", "password", "said", "advice"),
    [
        (WRONG, "ann:wrong", True, "lets nobody in", [LOCKED_OUT]),
        (WRONG, "ann", True, "lets nobody in", [LOCKED_OUT]),
        (
            refusal("FATAL", "3D000", "Datenbank »db« existiert nicht"),
            "ann:right",
            True,
            "lets nobody in",
            [LOCKED_OUT],
        ),
        (
            refusal("FATAL", "3D000", 'database "db" does not exist'),
            "ann",
            False,
            "lets nobody in",
            [LOCKED_OUT],
        ),
        (
            refusal("ВАЖНО", "28000", "в pg_hba.conf нет записи"),
            "ann",
            False,
            "turns us away",
            [LOCKED_OUT, "runs"],
        ),
        (refusal("FATAL", "57P03", STARTING), "ann:right", False, "does not answer", ["runs"]),
        (
            refusal("FATAL", "53300", "too many connections for role"),
            "ann:right",
            True,
            "does not answer",
            ["runs"],
        ),
        (b"", "ann:right", True, "does not answer", ["runs"]),
    ],
    ids=[
        "wrong password",
        "no password",
        "no database",
        "no database in English",
        "not listed",
        "starts up",
        "full",
        "hangs up",
    ],
)
async def test_a_server_that_lets_nobody_in_is_known_in_any_language(
    answer: bytes, who: str, password: bool, said: str, advice: list[str]
) -> None:
    with (
        speaking(answer, password=password) as place,
        pytest.raises(StoreGone, match=said) as gone,
    ):
        await PostgresStore.open(f"postgresql://{who}@{place}", attempts=1)
    assert all(part in str(gone.value.fix) for part in advice)
    assert (LOCKED_OUT in str(gone.value.fix)) == (LOCKED_OUT in advice)
