"""A key of a namespace names topics and groups by bare names, and sees and names nothing outside."""

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire
from tests.control.operators import Operator, illegal
from tests.namespaces.teams import CONSUMERS, PRODUCERS, TOPIC, Team

# MQ_NAMESPACE_SECONDS=120 in the environment: two teams work and look for each other for two minutes.
SECONDS = float(os.environ.get("MQ_NAMESPACE_SECONDS", "3"))


def bodies(deliveries: list[Document]) -> set[str]:
    return {one["message"]["body"] for one in deliveries}


def test_two_teams_with_the_same_names_receive_their_own_messages(ours: Team, theirs: Team) -> None:
    for team in (ours, theirs):
        team.sends()
        team.ends(team.begins())
        team.ends(team.begins(), "ROLLBACK")

    for team in (ours, theirs):
        received = team.receives()
        while len(received) < 2:
            received += team.receives()
        assert bodies(received) == {team.secret}
        assert {one["message"]["topic"] for one in received} == {TOPIC}
        team.acks(received)
        assert team.receives(wait_seconds=0) == []


def test_a_key_without_a_namespace_names_things_whole(ours: Team, operator: Operator) -> None:
    ours.sends()
    ours.acks(ours.receives())

    whole = f"{ours.namespace}%{TOPIC}"
    assert operator.reads(f"/v1/topics/{quote(whole)}")["name"] == whole
    group = operator.reads(f"/v1/consumer-groups/{quote(f'{ours.namespace}%{CONSUMERS}')}")
    assert {lag["topic"] for lag in group["lag"]} == {whole}


def test_a_bound_key_may_write_whole_names_of_its_own_namespace(ours: Team) -> None:
    sent = ours.calls.make("/v1/messages", topic=f"{ours.namespace}%{TOPIC}", body="whole").document

    assert sent["topic"] == TOPIC
    assert bodies(ours.receives()) == {"whole"}


def test_bulks_and_batches_are_wrapped_too(ours: Team, theirs: Team) -> None:
    half = {"op": "half", "topic": TOPIC, "producer_group": PRODUCERS, "body": "half"}
    several = ours.calls.bulk({"op": "send", "topic": TOPIC, "body": "one"}, half)
    end = {"op": "end", "transaction_id": several[1]["transaction_id"], "producer_group": PRODUCERS, "state": "COMMIT"}
    assert [one["status"] for one in ours.calls.bulk(end)] == [200]
    ours.calls.make("/v1/messages/batch", topic=TOPIC, messages=[{"body": "two"}, {"body": "three"}])
    together = {
        "producer_group": PRODUCERS,
        "messages": [{"topic": TOPIC, "body": "a"}, {"topic": "other", "body": "b"}],
    }
    begun = ours.calls.make("/v1/transactions", **together).document
    ended = ours.calls.make(f"/v1/transactions/{begun['transaction_id']}/end", producer_group=PRODUCERS, state="COMMIT")

    assert len(ended.document["messages"]) == 2
    found: set[str] = set()

    def are_all_there() -> bool:
        found.update(bodies(ours.receives(wait_seconds=0)))
        return len(found) == 5

    eventually(are_all_there)
    assert found == {"one", "half", "two", "three", "a"}
    assert theirs.receives(wait_seconds=0) == []


def test_a_dead_letter_has_its_group_and_topic_by_bare_names(ours: Team) -> None:
    assert ours.calls.put(f"/v1/consumer-groups/{CONSUMERS}", max_reconsume_times=0).status == 201
    ours.sends()
    [delivery] = ours.receives()
    nack = {"receipt_handles": [delivery["receipt_handle"]], "reason": "unwanted"}
    assert ours.calls.make(f"/v1/consumer-groups/{CONSUMERS}/nack", **nack).status == 200

    [letter] = eventually(lambda: ours.calls.reads(f"/v1/dead-letters/{CONSUMERS}")["results"])
    assert letter["message"]["topic"] == TOPIC
    names = {topic["name"] for topic in ours.calls.reads("/v1/topics")["results"]}
    assert names == {TOPIC, f"%RETRY%{CONSUMERS}", f"%DLQ%{CONSUMERS}"}
    again = ours.calls.make(f"/v1/dead-letters/{CONSUMERS}/redrive", all=True, to_topic="mended")
    assert [one["topic"] for one in again.document["results"]] == ["mended"]
    assert bodies(ours.receives(topic="mended")) == {ours.secret}


def test_a_producer_that_polls_is_asked_by_bare_names(ours: Team, theirs: Team, operator: Operator) -> None:
    begun = ours.begins(check_immunity_seconds=0)
    theirs.begins(check_immunity_seconds=0)
    operator.make(f"/v1/transactions/{begun['transaction_id']}/check")

    def asked() -> list[Document]:
        found: list[Document] = ours.calls.make(
            f"/v1/producer-groups/{PRODUCERS}/checks/receive", wait_seconds=1
        ).document["transactions"]
        return found

    [check] = eventually(asked)
    assert (check["transaction_id"], check["topic"]) == (begun["transaction_id"], TOPIC)
    ours.ends(begun)


def test_lists_hold_what_is_within_alone(ours: Team, theirs: Team) -> None:
    begun = {team.namespace: team.begins()["transaction_id"] for team in (ours, theirs)}
    for team in (ours, theirs):
        team.sends()
        team.acks(team.receives())

    for team in (ours, theirs):
        assert [one["name"] for one in team.calls.walks("/v1/producer-groups")] == [PRODUCERS]
        assert [one["name"] for one in team.calls.walks("/v1/consumer-groups")] == [CONSUMERS]
        assert {one["name"] for one in team.calls.walks("/v1/topics")} == {TOPIC, f"%RETRY%{CONSUMERS}"}
        [listed] = team.calls.walks("/v1/transactions")
        assert (listed["transaction_id"], listed["producer_group"]) == (begun[team.namespace], PRODUCERS)
        assert [one["topic"] for one in listed["messages"]] == [TOPIC]
        assert team.calls.walks(f"/v1/transactions?producer_group={PRODUCERS}&topic={TOPIC}") == [listed]
        found = team.calls.walks(f"/v1/messages?topic={TOPIC}&key={team.secret}")
        assert {one["message"]["body"] for one in found} == {team.secret}


@pytest.mark.parametrize(
    "call",
    [
        lambda calls, begun: calls.get(f"/v1/transactions/{begun['transaction_id']}"),
        lambda calls, begun: calls.make(f"/v1/transactions/{begun['transaction_id']}/check"),
        lambda calls, begun: calls.make(
            f"/v1/transactions/{begun['transaction_id']}/resolve", state="ROLLBACK", reason="not ours"
        ),
        lambda calls, begun: calls.make(
            f"/v1/transactions/{begun['transaction_id']}/end", producer_group=PRODUCERS, state="ROLLBACK"
        ),
        lambda calls, begun: calls.make(f"/v1/discarded/{begun['transaction_id']}/resume"),
        lambda calls, begun: calls.get(f"/v1/messages/{begun['message_id']}"),
        lambda calls, begun: calls.get(f"/v1/messages/{begun['message_id']}/trace"),
    ],
    ids=["look", "check", "resolve", "end", "resume", "message", "trace"],
)
def test_an_id_of_another_team_is_that_of_nothing(
    ours: Team, theirs: Team, call: Callable[[Operator, Document], object]
) -> None:
    begun = theirs.begins()
    unknown = {name: begun[name][:-12] + "000000000000" for name in ("transaction_id", "message_id")}

    refused, of_nothing = call(ours.calls, begun), call(ours.calls, unknown)

    assert refused.status == of_nothing.status == 404  # type: ignore[attr-defined]  # both are answers
    assert theirs.calls.reads(f"/v1/transactions/{begun['transaction_id']}")["state"] == "PREPARED"


@pytest.mark.parametrize(
    "path",
    [
        "/v1/api-keys",
        "/v1/namespaces",
        "/v1/delay-levels",
        "/v1/timers",
        "/v1/messages?topic=RMQ_SYS_TRANS_HALF_TOPIC",
        "/v1/topics/SCHEDULE_TOPIC_XXXX/queues/0/messages",
        "/v1/topics/TRANS_CHECK_MAX_TIME_TOPIC",
    ],
)
def test_what_is_of_the_whole_broker_is_refused(ours: Team, path: str) -> None:
    ours.sends()

    assert ours.calls.page(path).status in (403, 404)


def test_no_answer_to_any_call_of_one_team_holds_a_word_of_the_other(ours: Team, theirs: Team) -> None:
    theirs.ends(theirs.begins())
    theirs.acks(theirs.receives())
    ours.sends()
    ours.acks(ours.receives())

    assert crawl(ours, theirs, theirs.begins(), theirs.sends(delay_seconds=3600)) > 60


def crawl(ours: Team, theirs: Team, begun: Document, sent: Document) -> int:
    """Calls every path as one team with what another one has; returns the number of calls."""
    values = {
        "topic": TOPIC,
        "group": CONSUMERS,
        "name": "coupons",
        "name_or_id": "1",
        "namespace": ours.namespace,
        "message_id": sent["message_id"],
        "transaction_id": begun["transaction_id"],
        "queue_id": "0",
        "endpoint_id": "1",
    }
    called = 0
    for path, methods in ours.calls.reads("/v1/schema")["paths"].items():
        for method in {"get", "post"} & methods.keys():
            body = None if method == "get" else json.dumps(request_of(path)).encode()
            # What a crawl receives it does not take from those who work.
            values["group"] = "crawlers" if path.endswith("/receive") else CONSUMERS
            for query in ["", f"?topic={TOPIC}", "?limit=100"] if method == "get" else [""]:
                answer = ours.calls.ask(method.upper(), path.format(**values) + query, body).connection.getresponse()
                page = answer.read().decode()
                assert theirs.secret not in page, (method, path)
                assert theirs.namespace not in page, (method, path)
                called += 1
    return called


def request_of(path: str) -> Document:
    """The body of a call that wants what another team has."""
    if path.endswith("/receive"):
        return {"topic": TOPIC} if "consumer-groups" in path else {}
    return {"producer_group": PRODUCERS, "state": "ROLLBACK", "topic": TOPIC, "body": "x", "reason": "x"}


def test_no_team_takes_the_name_of_another(ours: Team, theirs: Team) -> None:
    theirs.sends()
    whole = f"{theirs.namespace}%{TOPIC}"

    assert ours.calls.get(f"/v1/topics/{quote(whole)}").status == 403
    assert ours.calls.get(f"/v1/messages?topic={quote(whole)}").status == 403
    assert ours.calls.make("/v1/messages", topic=whole, body="mine").status == 403
    assert bodies(theirs.receives()) == {theirs.secret}
    assert list(ours.calls.walks("/v1/topics")) == []


def test_the_scopes_of_a_bound_key_name_bare_names(broker: RunningBroker, operator: Operator, ours: Team) -> None:
    narrow = Team.within(broker, operator, ours.namespace, f"produce:{TOPIC}")

    assert narrow.calls.make("/v1/messages", topic=TOPIC, body="x").status == 201
    refused = narrow.calls.make("/v1/messages", topic="other", body="x")
    assert (refused.status, ours.namespace in refused.problem["detail"]) == (403, False)


def test_a_client_without_a_bound_key_asks_for_a_namespace_by_its_header(
    broker: RunningBroker, operator: Operator, ours: Team
) -> None:
    header = {"X-Namespace": ours.namespace}
    message = json.dumps({"topic": TOPIC, "body": "by header"}).encode()

    sent = operator.call("POST", "/v1/messages", message, header)

    assert (sent.status, sent.document["topic"]) == (201, TOPIC)
    assert bodies(ours.receives()) == {"by header"}
    assert operator.call("GET", f"/v1/topics/{TOPIC}", headers=header).document["name"] == TOPIC
    narrow = operator.make("/v1/api-keys", name=f"narrow-{ours.namespace}", scopes=[f"produce:{TOPIC}"]).document["key"]
    # A header gives no right: the scopes of such a key name whole names.
    assert Wire(broker.url, narrow).call("POST", "/v1/messages", message, header).status == 403


def test_a_header_that_is_no_namespace_of_the_key_is_refused(operator: Operator, ours: Team, theirs: Team) -> None:
    message = json.dumps({"topic": TOPIC, "body": "x"}).encode()

    assert ours.calls.call("POST", "/v1/messages", message, {"X-Namespace": theirs.namespace}).status == 403
    assert ours.calls.call("POST", "/v1/messages", message, {"X-Namespace": ours.namespace}).status == 201
    assert operator.call("POST", "/v1/messages", message, {"X-Namespace": "a%b"}).problem["code"] == "message_illegal"
    assert operator.call("GET", "/v1/topics", headers={"X-Namespace": ""}).problem["code"] == "message_illegal"


def test_a_namespace_is_made_changed_and_taken_away(operator: Operator, ours: Team) -> None:
    path = f"/v1/namespaces/{ours.namespace}"

    assert operator.put(path, max_topics=3).document["max_topics"] == 3
    assert operator.reads(path)["max_topics"] == 3
    assert ours.namespace in {one["name"] for one in operator.walks("/v1/namespaces", 100)}
    assert "revoke these keys first" in illegal(operator.delete(path))
    assert operator.put("/v1/namespaces/a%25b").status == 422
    assert operator.make("/v1/api-keys", name="of-none", scopes=["read:*"], namespace="absent").status == 404
    for key in operator.walks("/v1/api-keys", 100):
        if key["namespace"] == ours.namespace:
            operator.delete(f"/v1/api-keys/{key['id']}")
    assert operator.delete(path).status == 204
    assert operator.get(path).status == 404


def test_teams_that_work_at_once_see_their_own_alone(ours: Team, theirs: Team) -> None:
    until = time.monotonic() + SECONDS

    def works(team: Team) -> tuple[int, Counter[str]]:
        """How many transactions it has committed, and the bodies that it has received."""
        committed, found = 0, Counter[str]()
        while time.monotonic() < until or found.total() < committed:
            if time.monotonic() < until:
                team.ends(team.begins(), "ROLLBACK")
                team.ends(team.begins())
                committed += 1
            received = team.receives(wait_seconds=0)
            team.acks(received)
            found.update(one["message"]["body"] for one in received)
        return committed, found

    def crawls(team: Team, other: Team) -> int:
        calls = 0
        while time.monotonic() < until:
            calls += crawl(team, other, other.begins(), other.sends(topic="others"))
        return calls

    with ThreadPoolExecutor(4) as together:
        working = [together.submit(works, team) for team in (ours, theirs)]
        crawling = [together.submit(crawls, *pair) for pair in ((ours, theirs), (theirs, ours))]
        for team, work in zip((ours, theirs), working, strict=True):
            committed, found = work.result()
            assert found == {team.secret: committed}
            assert committed > 0
        assert min(crawl.result() for crawl in crawling) > 60
