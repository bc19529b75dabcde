"""The client reads whatever HTTP/1.1 allows as an answer, and uses a connection again only behind a whole one."""

import os
import socketserver
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mqbroker_client import Broker, Message, Producer, Retry
from mqbroker_client.core import errors

from tests.broker.polling import eventually
from tests.client.servers import ADDRESS, on_a_free_port

OK = b"HTTP/1.1 200 OK\r\n"
BODY = b'{"place": "there"}'
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
WHOLE = OK + LENGTH + b"\r\n" + BODY


class RawServer(socketserver.ThreadingTCPServer):
    """Answers each request by the same pieces of bytes, each sent when the one before has arrived."""

    daemon_threads = True
    pieces: Sequence[bytes] = ()
    closes = False
    #: Of each connection, how many requests came there.
    requests: list[int]
    closed = 0

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.closed += 1

    def has_closed(self, count: int) -> bool:
        return self.closed == count


class Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True
    server: RawServer

    def handle(self) -> None:
        place = len(self.server.requests)
        self.server.requests.append(0)
        while self.rfile.readline():
            while self.rfile.readline() != b"\r\n":
                pass
            self.server.requests[place] += 1
            for piece in self.server.pieces:
                self.wfile.write(piece)
            if self.server.closes:
                return


@contextmanager
def answering(*pieces: bytes, closes: bool = False) -> Iterator[tuple[Broker, RawServer]]:
    server = on_a_free_port(lambda port: RawServer((ADDRESS, port), Handler))
    server.pieces, server.closes, server.requests = pieces, closes, []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        with Broker(f"http://{ADDRESS}:{server.server_address[1]}", "mq_key", retry=Retry(tries=1)) as broker:
            yield broker, server
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("pieces", "connections"),
    [
        ([WHOLE], 1),
        ([WHOLE[at : at + 1] for at in range(len(WHOLE))], 1),
        ([OK + b"content-LENGTH:%d\r\nX-Two: a\r\nX-Two: b\r\n\r\n" % len(BODY), BODY], 1),
        ([OK + LENGTH + b"Connection: Close\r\n\r\n" + BODY], 2),
        ([OK + CHUNKED + b"4\r\n" + BODY[:4], b"\r\ne;more=1\r\n" + BODY[4:] + b"\r\n0\r\nX-End: 1\r\n\r\n"], 2),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", WHOLE], 2),
        ([b"HTTP/1.0 200 OK\r\n" + LENGTH + b"\r\n" + BODY], 2),
        ([WHOLE + b"HTTP/1.1 200 OK\r\n"], 2),
    ],
    ids=["whole", "byte by byte", "small letters", "last", "in chunks", "continue", "HTTP/1.0", "more behind it"],
)
def test_an_answer_is_read_in_each_form(pieces: list[bytes], connections: int) -> None:
    with answering(*pieces) as (broker, server):
        assert [broker.call("GET", "/v1/x")["place"] for _ in range(2)] == ["there"] * 2
        assert len(server.requests) == connections


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    with answering(OK + b"\r\n" + BODY, closes=True) as (broker, _):
        assert broker.call("GET", "/v1/x")["place"] == "there"


@pytest.mark.parametrize("status", [b"204 No Content", b"200 OK\r\nContent-Length: 0"])
def test_an_answer_without_a_body_is_an_empty_document(status: bytes) -> None:
    with answering(b"HTTP/1.1 %s\r\n\r\n" % status) as (broker, _):
        assert broker.call("DELETE", "/v1/x") == {}


def test_an_answer_to_head_has_a_length_and_no_body() -> None:
    with answering(OK + LENGTH + b"\r\n") as (broker, _):
        assert broker.call("HEAD", "/v1/x") == {}


@pytest.mark.parametrize(
    "answer", [b"", OK, OK + LENGTH + b"\r\n{", b"SSH-2.0-OpenSSH_9\r\n", OK + CHUNKED + b"zz\r\n"]
)
def test_an_answer_that_is_not_whole_is_none(answer: bytes) -> None:
    with answering(answer, closes=True) as (broker, server), pytest.raises(errors.Unreachable, match="no answer from"):
        broker.call("GET", "/v1/x")
    assert server.requests == [1]


def test_a_connection_that_was_closed_meanwhile_is_not_used_again() -> None:
    with answering(WHOLE, closes=True) as (broker, server):
        for count in range(1, 4):
            broker.call("GET", "/v1/x")
            eventually(partial(server.has_closed, count))
        assert server.requests == [1] * 3


@pytest.mark.parametrize("traceparent", ["00-1\r\nX-More: 1", "00-1\n", "\x7f"])
def test_a_trace_context_adds_no_header_of_its_own(traceparent: str) -> None:
    with answering(WHOLE) as (broker, server):
        with pytest.raises(ValueError, match="traceparent"):
            Producer(broker, "shop").send_message(Message("orders", b"x", traceparent=traceparent))
        assert server.requests == []


@pytest.mark.parametrize("target", ["/v1/x HTTP/1.1\r\nX-More: 1", "/v1/a b", "/v1/é"])
def test_a_target_that_is_not_quoted_is_refused(target: str) -> None:
    with answering(WHOLE) as (broker, server):
        with pytest.raises(ValueError, match="quoted"):
            broker.call("GET", target)
        assert server.requests == []


ASK_BY_TLS = """
import sys
from mqbroker_client import Broker, Retry
from mqbroker_client.core import errors
try:
    print(Broker(sys.argv[1], "mq_key", retry=Retry(tries=1)).call("GET", "/v1/x"))
except errors.Unreachable as error:
    print(error)
"""


@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_certificate_is_verified(tmp_path: Path, is_trusted: bool) -> None:
    names = [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        "key",
        "-out",
        "certificate",
    ]
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", *names]
    subprocess.run(new, cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    with answering(WHOLE) as (_, server):
        server.socket = context.wrap_socket(server.socket, server_side=True)
        trusted = {"SSL_CERT_FILE": str(tmp_path / "certificate")} if is_trusted else {}
        url = f"https://localhost:{server.server_address[1]}"
        words = [sys.executable, "-c", ASK_BY_TLS, url]
        found = subprocess.run(words, capture_output=True, text=True, env=os.environ | trusted, timeout=300, check=True)

    assert ("{'place': 'there'}" if is_trusted else "CERTIFICATE_VERIFY_FAILED") in found.stdout
