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
ONES = b"[" + b"1," * (SIZE // 2) + b"1]"
OBJECTS = b"[" + b"{}," * (SIZE // 3) + b"{}]"
TEXTS = b"[" + b'"",' * (SIZE // 3) + b'""]'
SEND = b'{"topic": "orders", "body": "x", '
GROUP = "/v1/consumer-groups/coupons"
# What each unpacks to, all of it within what the broker unpacks.
BODIES: dict[str, tuple[str, bytes]] = {
    "an unknown field of a send": ("/v1/messages", SEND + b'"a": ' + ONES + b"}"),
    "objects in a send": ("/v1/messages", SEND + b'"a": ' + OBJECTS + b"}"),
    "levels": ("/v1/messages", b'{"a":' * (SIZE // 5)),
    "keys": ("/v1/messages", SEND + b'"keys": ' + TEXTS + b"}"),
    "properties": ("/v1/messages", SEND + b'"properties": {' + b'"a":"",' * (SIZE // 7) + b'"b":""}}'),
    "a batch": ("/v1/messages/batch", b'{"topic": "orders", "messages": ' + OBJECTS + b"}"),
    "halves": ("/v1/transactions", b'{"producer_group": "shop", "messages": ' + OBJECTS + b"}"),
    "a bulk": ("/v1/bulk", b'{"operations": ' + ONES + b"}"),
    "acks of a bulk": ("/v1/bulk", b'{"operations": [{"op":"ack","group":"a","receipt_handles":%s}]}' % TEXTS),
    "an ack": (f"{GROUP}/ack", b'{"receipt_handles": ' + TEXTS + b"}"),
    "an array": ("/v1/messages", ONES),
    # Larger than their calls may be.
    "a receive": (f"{GROUP}/receive", b'{"topic": "orders", "filter": ' + ONES + b"}"),
    "an end": (f"/v1/transactions/{'0' * 8}-0000-7000-8000-000000000000/end", b'{"remark": ' + ONES + b"}"),
    # As many as are read at once.
    "a small batch": ("/v1/messages/batch", b'{"topic": "orders", "messages": [' + b"{}," * 80_000 + b"{}]}"),
    "a small send": ("/v1/messages", SEND + b'"a": [' + b"1," * 32_000 + b"1]}"),
}


@pytest.mark.parametrize("is_within", [False, True], ids=["without a namespace", "in a namespace"])
def test_what_unpacks_to_a_hostile_body_is_refused_and_holds_nothing(broker: RunningBroker, is_within: bool) -> None:
    headers = {"Content-Encoding": "gzip", **({"X-Namespace": characters.name("team")} if is_within else {})}
    packed = [(path, gzip.compress(body[:16_700_000], 1)) for path, body in BODIES.values()]
    statuses: list[int] = []

    def load() -> None:
        end = time.monotonic() + LOADED_SECONDS
        while not statuses or time.monotonic() < end:
            statuses.extend(broker.wire().call("POST", path, body, headers).status for path, body in packed)

    with alive.asked(broker) as seconds:
        burden = burden_of(broker, load)

    # 503 where the body before has not been given back yet.
    assert set(statuses) <= {400, 413, 422, 503}
    print(f"/healthz within {max(seconds) * 1000:.0f} ms")
    assert not IS_STRICT or max(seconds) <= alive.MOST_SECONDS
    hold(burden, WITH_A_KEY_BYTES)
