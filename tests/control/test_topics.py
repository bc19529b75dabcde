"""Topics as an operator administers them."""

from urllib.parse import quote

import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import problem
from tests.control.operators import Operator, illegal


def test_put_makes_a_topic_with_defaults(operator: Operator, orders: str) -> None:
    answer = operator.put(f"/v1/topics/{orders}")

    assert answer.status == 201
    assert {**answer.document, "created_at": ..., "offsets": ...} == {
        "name": orders,
        "queues": 4,
        "reserved_hours": None,
        "permission": "rw",
        "sends_from": None,
        "system": False,
        "created_at": ...,
        "offsets": ...,
    }
    assert answer.document["offsets"] == [
        {"queue_id": queue, "min_offset": 0, "max_offset": 0, "last_stored_at": None} for queue in range(4)
    ]
    assert operator.reads(f"/v1/topics/{orders}") == answer.document


def test_put_changes_what_is_given_and_leaves_the_rest(operator: Operator, orders: str) -> None:
    operator.put(f"/v1/topics/{orders}", queues=2, reserved_hours=24)

    answer = operator.put(f"/v1/topics/{orders}", queues=8, permission="r")

    assert answer.status == 200
    topic = operator.reads(f"/v1/topics/{orders}")
    assert (topic["queues"], topic["reserved_hours"], topic["permission"]) == (8, 24, "r")
    assert operator.put(f"/v1/topics/{orders}", reserved_hours=None).document["reserved_hours"] is None


def test_a_topic_never_loses_queues(operator: Operator, orders: str) -> None:
    operator.put(f"/v1/topics/{orders}", queues=8)

    answer = operator.put(f"/v1/topics/{orders}", queues=7)

    assert answer.problem == problem(
        422, "queue_illegal", f"The topic {orders} has 8 queues and cannot have fewer: give 8 or more."
    )
    assert operator.reads(f"/v1/topics/{orders}")["queues"] == 8


@pytest.mark.parametrize("queues", [0, -1, 1025])
def test_queues_are_1_to_1024(operator: Operator, orders: str, queues: int) -> None:
    answer = operator.put(f"/v1/topics/{orders}", queues=queues)

    assert answer.problem == problem(422, "queue_illegal", f"queues {queues} is not between 1 and 1024.")
    assert operator.get(f"/v1/topics/{orders}").status == 404


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"queues": "4"}, "queues: it is no whole number."),
        ({"queues": True}, "queues: it is no whole number."),
        ({"queues": None}, "queues: it cannot be null."),
        ({"reserved_hours": 0}, "reserved_hours: it is below 1."),
        ({"reserved_hours": 1.5}, "reserved_hours: it is no whole number."),
        ({"permission": "x"}, "permission: it is none of rw, r, w."),
        (
            {"colour": 1, "size": 2},
            "There is no field colour, size here: the fields are queues, reserved_hours, permission, sends_from.",
        ),
    ],
)
def test_a_bad_field_is_named_with_what_is_wrong(
    operator: Operator, orders: str, fields: dict[str, object], sentence: str
) -> None:
    assert illegal(operator.put(f"/v1/topics/{orders}", **fields)) == sentence
    assert operator.get(f"/v1/topics/{orders}").status == 404


def test_a_name_that_no_topic_may_have_is_refused(operator: Operator) -> None:
    answer = operator.put("/v1/topics/my%20orders")

    assert answer.problem == problem(
        422, "topic_illegal", "topic 'my orders' is not a valid topic name: 1 to 127 letters, digits and % | _ -."
    )


def test_an_unknown_topic_is_not_found(operator: Operator, orders: str) -> None:
    sentence = f"There is no topic {orders}: PUT /v1/topics/{orders} makes it."
    for answer in (operator.get(f"/v1/topics/{orders}"), operator.delete(f"/v1/topics/{orders}")):
        assert answer.problem == problem(404, "topic_not_exist", sentence)


def test_the_way_to_an_unknown_topic_can_be_gone(operator: Operator) -> None:
    name = f"%{characters.name('orders')}"
    missing = operator.get(f"/v1/topics/{quote(name)}").problem

    assert missing["detail"] == f"There is no topic {name}: PUT /v1/topics/{quote(name)} makes it."
    assert operator.put(f"/v1/topics/{quote(name)}").status == 201


@pytest.mark.parametrize("kind", ["consumer-groups", "producer-groups", "subscriptions"])
def test_the_way_to_what_is_unknown_can_be_gone_as_it_is_written(operator: Operator, kind: str) -> None:
    name = f"%41{characters.name('shop')}"
    missing = operator.get(f"/v1/{kind}/{quote(name)}").problem

    assert f"PUT /v1/{kind}/{quote(name)} makes it" in missing["detail"]


def test_a_topic_that_only_the_broker_makes_names_no_way_that_is_forbidden(operator: Operator) -> None:
    name = f"%DLQ%{characters.name('group')}"
    sentence = f"There is no topic {name}: the broker makes it with its first message."
    for path in (f"/v1/topics/{quote(name)}", f"/v1/messages?topic={quote(name)}"):
        assert operator.get(path).problem == problem(404, "topic_not_exist", sentence)


@pytest.mark.parametrize(
    ("name", "what"), [("RMQ_SYS_TRANS_HALF_TOPIC", "half messages"), ("RMQ_SYS_TRANS_OP_HALF_TOPIC", "ends")]
)
def test_a_topic_of_rocketmq_that_the_broker_never_makes_says_where_its_messages_are_seen(
    operator: Operator, name: str, what: str
) -> None:
    found = operator.get(f"/v1/topics/{name}").problem
    way = (
        f"it is RocketMQ's name for {what}, a view of the rows that are kept; GET /v1/topics/{name}/queues/0/messages "
        f"and GET /v1/messages?topic={name} read it, with the scope manage."
    )

    assert found == problem(404, "topic_not_exist", f"There is no topic {name}: {way}")


def test_a_topic_of_the_brokers_own_says_that_it_takes_no_sends(
    broker: RunningBroker, operator: Operator, producer: Producer, consumer: Consumer, orders: str
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, retry_policy={"kind": "none"})
    producer.send(orders, b"order 1")
    consumer.nack(consumer.receive(orders, wait_seconds=5))
    path = f"/v1/topics/{quote(f'%DLQ%{consumer.group}')}"

    eventually(lambda: operator.get(path).status == 200)

    assert operator.reads(path)["permission"] == "r"
    sent = operator.post("/v1/messages", {"topic": f"%DLQ%{consumer.group}", "body": "order 2"})
    assert (sent.status, sent.problem["code"]) == (403, "topic_forbidden")


def test_bounds_tell_what_became_visible(operator: Operator, orders: str) -> None:
    operator.put(f"/v1/topics/{orders}", queues=2)
    sent = [operator.make("/v1/messages", topic=orders, body="order", queue_id=1).document for _ in range(3)]

    empty, used = operator.reads(f"/v1/topics/{orders}")["offsets"]

    assert empty == {"queue_id": 0, "min_offset": 0, "max_offset": 0, "last_stored_at": None}
    assert (used["queue_id"], used["min_offset"], used["max_offset"]) == (1, 0, 3)
    assert used["last_stored_at"] >= sent[-1]["stored_at"]


def test_topics_are_listed_by_name_page_by_page(operator: Operator) -> None:
    stem = characters.name("listed")
    for number in (3, 1, 2):
        operator.put(f"/v1/topics/{stem}-{number}")

    names = [topic["name"] for topic in operator.walks("/v1/topics")]

    assert names == sorted(names)
    assert [name for name in names if name.startswith(stem)] == [f"{stem}-1", f"{stem}-2", f"{stem}-3"]


def test_the_brokers_own_topics_can_be_read_but_not_changed(operator: Operator) -> None:
    own = operator.reads("/v1/topics/SCHEDULE_TOPIC_XXXX")
    sentence = "The topic SCHEDULE_TOPIC_XXXX belongs to the broker: it can be read, but not changed."

    assert own["system"]
    assert own in [{**topic, "offsets": own["offsets"]} for topic in operator.walks("/v1/topics", limit=100)]
    for answer in (
        operator.put("/v1/topics/SCHEDULE_TOPIC_XXXX", queues=20),
        operator.delete("/v1/topics/SCHEDULE_TOPIC_XXXX"),
    ):
        assert answer.problem == problem(403, "topic_forbidden", sentence)
    assert operator.put("/v1/topics/%25DLQ%25shop").problem["code"] == "topic_forbidden"
    assert operator.put("/v1/topics/RMQ_SYS_TRANS_HALF_TOPIC").problem["code"] == "topic_forbidden"


def test_a_topic_that_is_read_only_takes_no_messages(operator: Operator, orders: str) -> None:
    operator.make("/v1/messages", topic=orders, body="order")

    operator.put(f"/v1/topics/{orders}", permission="r")

    assert operator.make("/v1/messages", topic=orders, body="order").problem["code"] == "topic_forbidden"


def test_a_deleted_topic_is_gone_and_begins_anew(operator: Operator, orders: str) -> None:
    operator.make("/v1/messages", topic=orders, body="order", queue_id=0)

    assert operator.delete(f"/v1/topics/{orders}").status == 204

    assert operator.get(f"/v1/topics/{orders}").status == 404
    assert operator.make("/v1/messages", topic=orders, body="order", queue_id=0).document["queue_offset"] == 0


def test_a_topic_with_undecided_messages_is_not_deleted(operator: Operator, orders: str, shop: str) -> None:
    begun = operator.make("/v1/transactions", producer_group=shop, topic=orders, body="order").document

    refused = operator.delete(f"/v1/topics/{orders}")

    assert illegal(refused) == (
        f"The topic {orders} has messages of 1 undecided transactions: "
        "end them before you delete the topic, the discarded ones with `mqb resolve`."
    )
    operator.make(f"/v1/transactions/{begun['transaction_id']}/end", producer_group=shop, state="ROLLBACK")
    assert operator.delete(f"/v1/topics/{orders}").status == 204
