"""Real HTTP servers on free local ports: one that answers by a script, one that serves a WSGI application."""

import json
import socketserver
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from tests.broker.ports import free_port

ADDRESS = "127.0.0.1"

Server = TypeVar("Server", bound=socketserver.BaseServer)


@dataclass(frozen=True)
class Answer:
    status: int
    body: object = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HangUp:
    """The request is read and the connection is closed without a word."""


@dataclass(frozen=True)
class Silence:
    """The request is read and nothing is ever answered."""


@dataclass(frozen=True)
class Stall:
    """An answer is begun and never comes to its end, though a byte of it comes now and then."""


@dataclass(frozen=True)
class Cut:
    """An answer is begun, and the connection closed in the middle of it."""


Step = Answer | HangUp | Silence | Stall | Cut
#: A step that depends on the request.
Reply = Callable[["Asked"], Step]


@dataclass(frozen=True)
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class ScriptedServer:
    """Gives the answers of its script in order, then the last one for ever, and remembers what it was asked."""

    url: str
    script: Sequence[Step | Reply]
    asked: list[Asked] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def next_step(self, asked: Asked) -> Step:
        with self._changed:
            self.asked.append(asked)
            self._changed.notify_all()
            step = self.script[min(len(self.asked), len(self.script)) - 1]
        return step(asked) if callable(step) else step

    def wait_for(self, requests: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.asked) >= requests, timeout=120)


def busy(retry_after: str | None = None, code: str = "system_busy") -> Answer:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return Answer(503, {"status": 503, "code": code, "detail": "The queue is full; come again."}, headers)


@contextmanager
def scripted(*script: Step | Reply) -> Iterator[ScriptedServer]:
    server = on_a_free_port(lambda port: _ScriptServer((ADDRESS, port), _ScriptHandler))
    server.scripted = ScriptedServer(f"http://{ADDRESS}:{server.server_port}", script)
    with _running(server):
        try:
            yield server.scripted
        finally:
            server.scripted.closing.set()


@contextmanager
def wsgi_server(application: Callable[..., Any]) -> Iterator[str]:
    server = on_a_free_port(lambda port: WSGIServer((ADDRESS, port), _QuietWSGIHandler))
    server.set_app(application)
    with _running(server):
        yield f"http://{ADDRESS}:{server.server_port}"


def on_a_free_port(make: Callable[[int], Server]) -> Server:
    """Made again while something else takes the port first."""
    for _ in range(50):
        try:
            return make(free_port())
        except OSError:
            continue
    raise OSError("none of 50 ports was free")


@contextmanager
def _running(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _ScriptServer(ThreadingHTTPServer):
    scripted: ScriptedServer
    daemon_threads = True


class _ScriptHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _ScriptServer

    def answer(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, json.loads(content) if content else None)
        step = self.server.scripted.next_step(asked)
        if isinstance(step, Answer):
            self._give(step, asked)
            return
        self.close_connection = True
        if isinstance(step, Silence):
            self.server.scripted.closing.wait()
        elif isinstance(step, Stall | Cut):
            self._begin_to_give()
        if isinstance(step, Stall):
            self._trickle()

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _begin_to_give(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"{")

    def _trickle(self) -> None:
        with suppress(OSError):
            while not self.server.scripted.closing.wait(0.05):
                self.wfile.write(b" ")

    def _give(self, answer: Answer, asked: Asked) -> None:
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        # A server that names itself in the script has no other name.
        (self.send_response_only if "Server" in answer.headers else self.send_response)(answer.status)
        # As the broker does: an answer bears the id of its request.
        for name, value in ({"X-Request-Id": asked.headers.get("x-request-id", "")} | answer.headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _QuietWSGIHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass
