"""What callers begin and do not finish: forms, bodies of a key without a scope, connections of one address.

`MQ_BURDENS=1 ./mq test tests/http/test_unfinished.py -s` measures it on a quiet machine.
"""

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import pytest

from tests.broker import characters
from tests.broker.burdens import IS_STRICT, WITH_A_KEY_BYTES, WITHOUT_A_KEY_BYTES, burden_of, hold
from tests.broker.running import QUICK, RunningBroker
from tests.http import alive

HELD_SECONDS = 8.0 if IS_STRICT else 2.0
CALLERS = 220
# Of forms in chunks of one byte, and their chunks.
SHORT_CALLERS, SHORT_CHUNKS = 400, 20_000
# Of a form, which has one byte more, and of a message.
FORM_BYTES, MESSAGE_BYTES = 60_000, 300_000
# The connections that one address may have, and how many it tries.
MOST, TRIED = 100, 1000
STRANGER = "127.0.0.2"


@pytest.fixture(scope="module")
def web(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A web process of its own, which has few connections of each address."""
    settings = QUICK | {"MQBROKER_CONNECTIONS_PER_ADDRESS": str(MOST)}
    folder, redis_url = tmp_path_factory.mktemp("unfinished"), broker.environment["REDIS_URL"]
    with RunningBroker(folder, broker.database_url, redis_url, settings, tasks=False) as web:
        yield web


def key_of(broker: RunningBroker, *scopes: str) -> str:
    """A new key."""
    made = broker.wire().post("/v1/api-keys", {"name": characters.name("narrow"), "scopes": list(scopes)})
    key: str = made.document["key"]
    return key


@contextlib.contextmanager
def begun(
    broker: RunningBroker, request: bytes, count: int, source: str = "127.0.0.1"
) -> Iterator[Sequence[socket.socket]]:
    """So many connections on which a request was begun; some may have been closed since."""
    place = urlsplit(broker.url)
    with contextlib.ExitStack() as opened:
        callers = []
        for _ in range(count):
            address = (str(place.hostname), int(place.port or 80))
            caller = opened.enter_context(socket.create_connection(address, 10, (source, 0)))
            with contextlib.suppress(ConnectionError):
                caller.sendall(request)
            callers.append(caller)
        yield callers


def head_of(path: str, size: int, key: str = "") -> bytes:
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    return f"POST {path} HTTP/1.1\r\nHost: broker\r\n{authorization}Content-Length: {size}\r\n\r\n".encode()


def test_unfinished_forms_take_neither_memory_nor_time(broker: RunningBroker) -> None:
    form = head_of("/console/login/", FORM_BYTES + 1) + b"x" * FORM_BYTES

    def load() -> None:
        with begun(broker, form, CALLERS):
            time.sleep(HELD_SECONDS)

    hold(burden_of(broker, load), WITHOUT_A_KEY_BYTES)


def test_unfinished_forms_in_chunks_of_one_byte_take_neither_memory_nor_time(broker: RunningBroker) -> None:
    head = b"POST /console/login/ HTTP/1.1\r\nHost: broker\r\nTransfer-Encoding: chunked\r\n\r\n"
    seconds: list[float] = []

    def load() -> None:
        with alive.asked(broker, seconds), begun(broker, head + b"1\r\na\r\n" * SHORT_CHUNKS, SHORT_CALLERS):
            time.sleep(HELD_SECONDS)

    hold(burden_of(broker, load), WITHOUT_A_KEY_BYTES)
    alive.hold(seconds)


def test_bodies_of_a_key_without_a_scope_for_them_leave_room_for_others(broker: RunningBroker) -> None:
    message = head_of("/v1/messages", MESSAGE_BYTES + 1, key_of(broker, "metrics")) + b"x" * MESSAGE_BYTES
    key, topic = key_of(broker, "produce:*"), characters.name("orders")
    statuses: list[int] = []

    def load() -> None:
        end = time.monotonic() + HELD_SECONDS
        with begun(broker, message, CALLERS):
            while time.monotonic() < end:
                statuses.append(status_of_a_send(broker, key, topic))
                time.sleep(0.1)

    burden = burden_of(broker, load)

    assert set(statuses) == {201}
    hold(burden, WITH_A_KEY_BYTES)


def status_of_a_send(broker: RunningBroker, key: str, topic: str) -> int:
    """Of a message of MESSAGE_BYTES."""
    body = json.dumps({"topic": topic, "body": "x" * MESSAGE_BYTES})
    with contextlib.closing(http.client.HTTPConnection(urlsplit(broker.url).netloc, timeout=120)) as connection:
        connection.request("POST", "/v1/messages", body, {"Authorization": f"Bearer {key}"})
        return connection.getresponse().status


def test_connections_of_one_address_leave_room_for_the_others(web: RunningBroker) -> None:
    """They have sent a part of a head."""
    kept: list[int] = []

    def load() -> None:
        with begun(web, b"POST /v1/messages HTTP/1.1\r\n", TRIED, STRANGER) as callers:
            time.sleep(HELD_SECONDS)
            kept.append(sum(is_open(caller) for caller in callers))

    burden = burden_of(web, load)

    assert kept == [MOST]
    hold(burden, WITHOUT_A_KEY_BYTES)


def is_open(caller: socket.socket) -> bool:
    """Whether the broker has not closed a connection on which it has said nothing."""
    caller.setblocking(False)
    try:
        return bool(caller.recv(1))
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
