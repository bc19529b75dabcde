"""Transactions that no broker takes, whatever it holds, by the class of its refusal."""

from collections.abc import Sequence
from typing import Any

#: Topic, body and further fields of a message.
Sending = tuple[str, bytes, dict[str, Any]]

NEVER_TAKEN: dict[str, tuple[str, Sequence[Sending]]] = {
    "a bad topic": ("TopicIllegal", [("no topic", b"1", {})]),
    "the broker's own topic": ("TopicForbidden", [("%DLQ%coupons", b"1", {})]),
    "200 messages": ("BatchIllegal", [("orders", b"1", {})] * 200),
    "5 MB": ("MessageTooLarge", [("orders", b"1" * 5_000_000, {})]),
    "5 MB together": ("MessageTooLarge", [("orders", b"1" * 2_500_000, {})] * 2),
    "an empty body": ("MessageIllegal", [("orders", b"", {})]),
    "a bad tag": ("MessageIllegal", [("orders", b"1", {"tags": "paid|shipped"})]),
    "a reserved property": ("MessageIllegal", [("orders", b"1", {"properties": {"KEYS": "1"}})]),
    "long properties": ("PropertiesTooLarge", [("orders", b"1", {"properties": {"a": "b" * 16_384}})]),
    "two delays": ("DelayIllegal", [("orders", b"1", {"delay_level": 1, "delay_seconds": 1})]),
    "a year's delay": ("DelayIllegal", [("orders", b"1", {"delay_seconds": 366 * 86_400})]),
    "a queue below 0": ("QueueIllegal", [("orders", b"1", {"queue_id": -1})]),
}
