"""Small requests that unpack to large bodies: they take neither the memory of a web process nor the time of others.

`MQ_BURDENS=1 ./mq test tests/http/test_hostile_bodies.py -s` measures them on a quiet machine, with `/healthz` beside.
"""

import gzip
import time

import pytest

from tests.broker import characters
from tests.broker.burdens import IS_STRICT, WITH_A_KEY_BYTES, burden_of, hold
from tests.broker.running import RunningBroker
from tests.http import alive

LOADED_SECONDS = 8.0 if IS_STRICT else 0.0
SIZE = 16_500_000
SEND = b'{"topic": "orders", "body": "x", '
GROUP = "/v1/consumer-groups/coupons"
END = f"/v1/transactions/{'0' * 8}-0000-7000-8000-000000000000/end"
# Name: the path, what a body begins with, what comes again and again, its end, and its size.
BODIES: dict[str, tuple[str, bytes, bytes, bytes, int]] = {
    "an unknown field of a send": ("/v1/messages", SEND + b'"a": [', b"1,", b"1]}", SIZE),
    "objects in a send": ("/v1/messages", SEND + b'"a": [', b"{},", b"{}]}", SIZE),
    "levels": ("/v1/messages", b"", b'{"a":', b"", SIZE),
    "keys": ("/v1/messages", SEND + b'"keys": [', b'"",', b'""]}', SIZE),
    "properties": ("/v1/messages", SEND + b'"properties": {', b'"a":"",', b'"b":""}}', SIZE),
    "a batch": ("/v1/messages/batch", b'{"topic": "orders", "messages": [', b"{},", b"{}]}", SIZE),
    "halves": ("/v1/transactions", b'{"producer_group": "shop", "messages": [', b"{},", b"{}]}", SIZE),
    "a bulk": ("/v1/bulk", b'{"operations": [', b"1,", b"1]}", SIZE),
    "acks of a bulk": (
        "/v1/bulk",
        b'{"operations": [',
        b'{"op":"ack","group":"a","receipt_handles":["a"]},',
        b"1]}",
        SIZE,
    ),
    "an ack": (f"{GROUP}/ack", b'{"receipt_handles": [', b'"",', b'""]}', SIZE),
    "an array": ("/v1/messages", b"[", b"1,", b"1]", SIZE),
    # Larger than their calls may be.
    "a receive": (f"{GROUP}/receive", b'{"topic": "orders", "filter": [', b"1,", b"1]}", SIZE),
    "an end": (END, b'{"remark": [', b"1,", b"1]}", SIZE),
    # As many as are read at once.
    "a small batch": ("/v1/messages/batch", b'{"topic": "orders", "messages": [', b"{},", b"{}]}", 240_000),
    "a small send": ("/v1/messages", SEND + b'"a": [', b"1,", b"1]}", 64_000),
}


@pytest.mark.parametrize("is_within", [False, True], ids=["without a namespace", "in a namespace"])
def test_what_unpacks_to_a_hostile_body_is_refused_and_holds_nothing(broker: RunningBroker, is_within: bool) -> None:
    headers = {"Content-Encoding": "gzip", **({"X-Namespace": characters.name("team")} if is_within else {})}
    packed = [
        (path, gzip.compress(start + again * (size // len(again)) + end, 1))
        for path, start, again, end, size in BODIES.values()
    ]
    statuses: list[int] = []
    seconds: list[float] = []

    def load() -> None:
        end = time.monotonic() + LOADED_SECONDS
        with alive.asked(broker, seconds):
            while not statuses or time.monotonic() < end:
                statuses.extend(broker.wire().call("POST", path, body, headers).status for path, body in packed)

    burden = burden_of(broker, load)

    # 503 where the body before has not been given back yet.
    assert set(statuses) <= {400, 413, 422, 503}
    hold(burden, WITH_A_KEY_BYTES)
    alive.hold(seconds)
