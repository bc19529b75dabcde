"""A request of a namespace that names a thing of another one is refused, and is no thing of its own by that name."""

import json
from urllib.parse import quote

import pytest

from tests.namespaces.teams import CONSUMERS, PRODUCERS, TOPIC, Team

HANDED = {"max_messages": 1, "wait_seconds": 0}


@pytest.mark.parametrize(
    ("method", "path", "fields"),
    [
        ("POST", "/v1/messages", {"topic": "{topic}", "body": "x"}),
        ("POST", "/v1/messages/batch", {"topic": "{topic}", "messages": [{"body": "x"}]}),
        ("POST", "/v1/transactions", {"topic": "{topic}", "body": "x", "producer_group": PRODUCERS}),
        ("POST", "/v1/transactions", {"topic": TOPIC, "body": "x", "producer_group": "{producers}"}),
        ("POST", "/v1/consumer-groups/{consumers}/receive", {"topic": TOPIC, **HANDED}),
        ("POST", f"/v1/consumer-groups/{CONSUMERS}/receive", {"topic": "{topic}", **HANDED}),
        ("POST", f"/v1/consumer-groups/{CONSUMERS}/receive", {"topic": "%RETRY%{consumers}", **HANDED}),
        ("GET", "/v1/topics/{topic}/queues/0/messages", None),
        ("GET", "/v1/messages?topic={topic}", None),
        ("GET", "/v1/topics/{topic}", None),
        ("PUT", "/v1/topics/{topic}", {}),
        ("PUT", "/v1/consumer-groups/{consumers}", {}),
    ],
)
def test_a_key_of_a_namespace_that_names_another_one_is_refused(
    ours: Team, theirs: Team, method: str, path: str, fields: dict[str, object] | None
) -> None:
    words = {"topic": TOPIC, "producers": PRODUCERS, "consumers": CONSUMERS}
    elsewhere = {word: f"{theirs.namespace}%{name}" for word, name in words.items()}
    for word, name in elsewhere.items():
        path = path.replace(f"{{{word}}}", quote(name, safe=""))
    body = json.dumps(fields)
    for word, name in elsewhere.items():
        body = body.replace(f"{{{word}}}", name)

    answer = ours.calls.call(method, path, None if fields is None else body.encode())

    assert (answer.status, answer.problem["code"]) == (403, "no_permission"), answer
    assert (
        f"in the namespace {theirs.namespace}, but this request is for the namespace {ours.namespace}"
        in answer.problem["detail"]
    )
    assert [one["name"] for one in ours.calls.reads("/v1/topics")["results"] if theirs.namespace in one["name"]] == []
