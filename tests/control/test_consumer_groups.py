"""Consumer groups as an operator administers them."""

import pytest

from tests.broker import characters
from tests.broker.wire import problem
from tests.control.operators import Operator, illegal


@pytest.fixture
def coupon_service() -> str:
    """A consumer group that no other test has."""
    return characters.name("coupon-service")


def test_put_makes_a_group_and_changes_what_is_given(operator: Operator, coupon_service: str) -> None:
    made = operator.put(f"/v1/consumer-groups/{coupon_service}", start_at="latest", max_reconsume_times=3)
    changed = operator.put(f"/v1/consumer-groups/{coupon_service}", paused=True, ordered=True)

    assert (made.status, changed.status) == (201, 200)
    assert {**operator.reads(f"/v1/consumer-groups/{coupon_service}"), "created_at": ...} == {
        "name": coupon_service,
        "start_at": "latest",
        "ordered": True,
        "queue_order": "turns",
        "fair_by": None,
        "limits": None,
        "max_reconsume_times": 3,
        "retry_policy": {"kind": "table", "delay_seconds": [1.0]},
        "paused": True,
        "created_at": ...,
        "lag": [],
        "retrying": {"messages": 0, "oldest_at": None, "next_at": None, "topics": []},
    }


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"kind": "none"}, {"kind": "none"}),
        ({"kind": "table", "delay_seconds": [1, 5]}, {"kind": "table", "delay_seconds": [1.0, 5.0]}),
        (
            {"kind": "exponential", "initial_seconds": 1},
            {"kind": "exponential", "initial_seconds": 1.0, "max_seconds": 7200.0, "multiplier": 2.0},
        ),
    ],
)
def test_a_retry_policy_is_kept_with_its_defaults(
    operator: Operator, coupon_service: str, given: dict[str, object], kept: dict[str, object]
) -> None:
    operator.put(f"/v1/consumer-groups/{coupon_service}", retry_policy=given)

    assert operator.reads(f"/v1/consumer-groups/{coupon_service}")["retry_policy"] == kept


POLICY = (
    " Give the kind table (optional: delay_seconds), exponential (optional: initial_seconds, max_seconds, multiplier) "
    "or none."
)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"start_at": "now"}, "start_at: it is none of earliest, latest."),
        ({"ordered": 1}, "ordered: it is neither true nor false."),
        ({"max_reconsume_times": -1}, "max_reconsume_times: it is below 0."),
        ({"retry_policy": None}, "retry_policy: it cannot be null."),
        ({"retry_policy": "none"}, "retry_policy: it is no object."),
        (
            {"retry_policy": {"kind": "linear"}},
            "retry_policy is not valid: kind is 'linear': give one of table, exponential, none." + POLICY,
        ),
        (
            {"retry_policy": {"kind": "exponential", "multiplier": 0}},
            "retry_policy is not valid: multiplier cannot be read: give a number >= 1.0." + POLICY,
        ),
        (
            {"retry_policy": {"kind": "table", "delays": []}},
            "retry_policy is not valid: There is no field delays here: the fields are delay_seconds, initial_seconds, "
            "max_seconds, multiplier." + POLICY,
        ),
        (
            {"start": "latest"},
            "There is no field start here: "
            "the fields are start_at, ordered, queue_order, fair_by, limits, max_reconsume_times, "
            "retry_policy, paused.",
        ),
    ],
)
def test_a_bad_field_is_named_with_what_is_wrong(
    operator: Operator, coupon_service: str, fields: dict[str, object], sentence: str
) -> None:
    assert illegal(operator.put(f"/v1/consumer-groups/{coupon_service}", **fields)) == sentence
    assert operator.get(f"/v1/consumer-groups/{coupon_service}").status == 404


def test_an_unknown_group_is_not_found(operator: Operator, coupon_service: str) -> None:
    path = f"/v1/consumer-groups/{coupon_service}"
    for answer in (operator.get(path), operator.delete(path)):
        assert answer.problem == problem(
            404, "group_not_exist", f"There is no consumer group {coupon_service}: PUT {path} makes it."
        )


def test_lag_tells_what_a_group_was_not_handed_yet(operator: Operator, coupon_service: str, orders: str) -> None:
    operator.put(f"/v1/topics/{orders}", queues=2)
    for queue in (0, 0, 0, 1):
        operator.make("/v1/messages", topic=orders, body="order", queue_id=queue)
    receive = f"/v1/consumer-groups/{coupon_service}/receive"
    assert len(operator.make(receive, topic=orders, max_messages=4).document["messages"]) == 4
    for _ in range(2):
        operator.make("/v1/messages", topic=orders, body="order", queue_id=0)

    lag = operator.reads(f"/v1/consumer-groups/{coupon_service}")["lag"]

    assert all(queue.pop("moved_at") and queue.pop("oldest_unacked_at") for queue in lag)
    assert lag == [
        {"topic": orders, "queue_id": 0, "next_offset": 3, "max_offset": 5, "lag": 2},
        {"topic": orders, "queue_id": 1, "next_offset": 1, "max_offset": 1, "lag": 0},
    ]


def test_the_oldest_unacked_message_is_the_first_that_is_in_flight_or_not_handed_out(
    operator: Operator, coupon_service: str, orders: str
) -> None:
    operator.put(f"/v1/topics/{orders}", queues=1)
    sent = [operator.make("/v1/messages", topic=orders, body="order").document["stored_at"] for _ in range(3)]
    group = f"/v1/consumer-groups/{coupon_service}"
    oldest: list[int | None] = []

    for _ in range(3):
        [entry] = operator.make(f"{group}/receive", topic=orders, max_messages=1).document["messages"]
        oldest.append(oldest_unacked(operator, group, sent))
        operator.make(f"{group}/ack", receipt_handles=[entry["receipt_handle"]])
        oldest.append(oldest_unacked(operator, group, sent))

    assert oldest == [0, 1, 1, 2, 2, None]


def oldest_unacked(operator: Operator, group: str, sent: list[str]) -> int | None:
    """Which message is the oldest in the only queue that the group has not acked: it is visible once it is stored."""
    [queue] = operator.reads(group)["lag"]
    visible_at = queue["oldest_unacked_at"]
    return None if visible_at is None else sum(stored_at <= visible_at for stored_at in sent) - 1


def test_a_paused_group_is_handed_nothing(operator: Operator, coupon_service: str, orders: str) -> None:
    operator.make("/v1/messages", topic=orders, body="order")
    operator.put(f"/v1/consumer-groups/{coupon_service}", paused=True)
    receive = f"/v1/consumer-groups/{coupon_service}/receive"

    assert operator.make(receive, topic=orders).document == {"messages": []}

    operator.put(f"/v1/consumer-groups/{coupon_service}", paused=False)
    assert len(operator.make(receive, topic=orders).document["messages"]) == 1


def test_groups_are_listed_by_name_page_by_page(operator: Operator, coupon_service: str) -> None:
    for number in (2, 1):
        operator.put(f"/v1/consumer-groups/{coupon_service}-{number}")

    names = [group["name"] for group in operator.walks("/v1/consumer-groups")]

    assert names == sorted(names)
    assert [name for name in names if name.startswith(coupon_service)] == [f"{coupon_service}-1", f"{coupon_service}-2"]


def test_a_deleted_group_begins_anew(operator: Operator, coupon_service: str, orders: str) -> None:
    operator.make("/v1/messages", topic=orders, body="order")
    receive = f"/v1/consumer-groups/{coupon_service}/receive"
    [first] = operator.make(receive, topic=orders).document["messages"]

    assert operator.delete(f"/v1/consumer-groups/{coupon_service}").status == 204

    assert operator.get(f"/v1/topics/%25RETRY%25{coupon_service}").status == 404
    [again] = operator.make(receive, topic=orders).document["messages"]
    assert again["message"] == first["message"]
    assert again["delivery_attempt"] == 1
