"""JSON of a caller: one that is deep, or has a number without an end, is refused at once."""

import time

import pytest

from tests.broker.polling import at_this_load
from tests.broker.wire import Wire

LARGE = 1_000_000


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", b"[" * LARGE),
        ("/v1/messages", b'{"topic": "orders", "body": "1", "properties": {"a": %s}}' % (b"[" * LARGE + b"]" * LARGE)),
        ("/v1/messages", b'{"topic": "orders", "body": "1", "delay_level": %s}' % (b"9" * LARGE)),
        ("/v1/messages", b'{"topic": "orders", "body": "1", "delay_level": 1e%s}' % (b"9" * LARGE)),
        ("/v1/bulk", b'{"operations": %s}' % (b'[{"op":' * (LARGE // 8))),
        ("/v1/consumer-groups/coupons/receive", b'{"topic": "orders", "max_messages": %s}' % (b"9" * LARGE)),
        ("/v1/api-keys", b'{"name": %s}' % (b'{"a":' * 40_000)),
        ("/v1/api-keys", b'{"name": "a", "scopes": ["manage"], "messages_per_second": %s}' % (b"9" * 200_000)),
    ],
    ids=[
        "arrays",
        "a deep field",
        "digits",
        "an exponent",
        "a bulk",
        "digits of a receive",
        "control",
        "control's digits",
    ],
)
def test_a_deep_or_endless_value_is_refused(wire: Wire, path: str, body: bytes) -> None:
    began = time.monotonic()

    answer = wire.call("POST", path, body, {"Content-Type": "application/json"})

    assert answer.status in (400, 422), answer
    assert answer.problem["code"] in ("bad_request", "message_illegal")
    assert time.monotonic() - began < at_this_load(2)
