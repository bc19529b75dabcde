"""Look-ups: pages walked to their end, and traces in short."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from tests.broker.wire import Document, Wire


def listed(wire: Wire, limit: int = 100, **query: object) -> list[Document]:
    """All results of a list, page by page; `from_` stands for from."""
    found: list[Document] = []
    asked = {name.rstrip("_"): value for name, value in query.items()} | {"limit": limit}
    while True:
        answer = wire.get(f"/v1/messages?{urlencode(asked)}")
        assert answer.status == 200, answer
        assert len(answer.document["results"]) <= limit
        found += answer.document["results"]
        if answer.document["next"] is None:
            return found
        asked["cursor"] = answer.document["next"]


def bodies(found: Sequence[Document]) -> list[str]:
    """The bodies of messages, in their order."""
    return [entry["message"]["body"] for entry in found]


def send(wire: Wire, topic: str, body: str, **fields: Any) -> Document:
    """The answer to a send."""
    answer = wire.post("/v1/messages", {"topic": topic, "body": body, **fields})
    assert answer.status == 201, answer
    found: Document = answer.document
    return found


def traced(wire: Wire, message_id: object) -> Document:
    """The trace of a message, its events in the order of time; a commit comes before the entries it made visible."""
    answer = wire.get(f"/v1/messages/{message_id}/trace")
    assert answer.status == 200, answer
    trace: Document = answer.document
    times = [event["at"] for event in trace["events"] if event["event"] != "end"]
    assert times == sorted(times)
    return trace


def events(trace: Document) -> list[str]:
    """What happened, in short: the event, and the group that it is about."""
    return [" ".join(filter(None, (event["event"], event.get("group")))) for event in trace["events"]]


def at(trace: Document, event: str) -> str:
    """When something happened for the first time."""
    return next(str(one["at"]) for one in trace["events"] if one["event"] == event)
