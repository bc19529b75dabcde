"""Characters of the tests: names of a test's own, and bodies of messages."""

import secrets
from collections.abc import Iterable

from mqbroker_client import Admin, Entry

from tests.broker.running import RunningBroker


def name(stem: str) -> str:
    """A name that no other test has."""
    return f"{stem}-{secrets.token_hex(4)}"


def bodies(entries: Iterable[Entry]) -> list[bytes]:
    """What the messages say, in their order."""
    return [entry.body for entry in entries]


def register(broker: RunningBroker, group: str, url: str, *, max_batch: int = 1, timeout_seconds: float = 1) -> str:
    """Has a producer group asked at a URL; returns the secret that signs."""
    admin = Admin(broker.client())
    admin.create_producer_group(group)
    return admin.register_endpoint(group, url, max_batch=max_batch, timeout_seconds=timeout_seconds).secret


def key_of(broker: RunningBroker, *scopes: str) -> str:
    """A new key with these scopes."""
    made = broker.wire().post("/v1/api-keys", {"name": name("reader"), "scopes": list(scopes)})
    key: str = made.document["key"]
    return key
