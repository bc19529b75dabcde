"""A pause of a push: from its answer on no call begins, in no process, however far the call had come before."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from mqbroker_client import Producer

from tests.broker.endpoints import ProducerEndpoint
from tests.broker.polling import eventually
from tests.push.operators import Operator
from tests.push.servers import pushed, texts

SYN_SENT = "02"


class BusyServer:
    """A server that accepts no connection at first: each caller keeps trying."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.port = self._listener.getsockname()[1]
        # The system keeps one connection that is not accepted, and answers no other.
        self._first = socket.create_connection(("127.0.0.1", self.port))

    def is_being_called(self) -> bool:
        rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return any(row[2].endswith(f":{self.port:04X}") and row[3] == SYN_SENT for row in rows)

    def hears(self) -> bytes:
        """Accepts the connections now; returns what the caller sends until it hangs up, or waits for an answer."""
        self._listener.accept()[0].close()
        self._listener.settimeout(10)
        caller, _ = self._listener.accept()
        caller.settimeout(10)
        with caller, suppress(ConnectionResetError):
            return caller.recv(65536)
        return b""

    def close(self) -> None:
        self._first.close()
        self._listener.close()


@pytest.fixture
def busy_server() -> Iterator[BusyServer]:
    server = BusyServer()
    yield server
    server.close()


@pytest.mark.parametrize("paused", ["subscriptions", "consumer-groups"])
def test_a_call_that_has_not_reached_its_server_when_a_pause_is_answered_never_does(
    operator: Operator,
    producer: Producer,
    server: ProducerEndpoint,
    busy_server: BusyServer,
    topic: str,
    name: str,
    paused: str,
) -> None:
    operator.subscribes(name, topic, f"http://127.0.0.1:{busy_server.port}/", timeout_seconds=20)
    producer.send(topic, b"order 1")
    eventually(busy_server.is_being_called)

    operator.does("PUT", f"/v1/{paused}/{name}", paused=True)

    assert busy_server.hears() == b""
    eventually(lambda: operator.in_flight(name) == 0)
    assert (operator.sees(name)["lag"], operator.state(name), operator.sees(name)["failures"]) == (1, "healthy", 0)
    operator.changes(name, url=server.url)
    operator.does("PUT", f"/v1/{paused}/{name}", paused=False)
    eventually(lambda: texts(server) == ["order 1"])
    assert [entry["delivery_attempt"] for entry in pushed(server)] == [1]
