"""Promises of the pages of dead letters: which groups have any, what these have in common, and the letters."""

from datetime import timedelta

from tests.console import given_up
from tests.console.operators import Operator
from tests.console.rows import Broker
from tests.console.test_console_agreement import metric

MINUTE = timedelta(minutes=1)


def letters(broker: Broker, group: str, number: int, reason: str | None = None) -> list[str]:
    """Messages of a new topic `orders` that a new group gave up; their ids, the oldest first."""
    orders, of_group = broker.topic("orders"), broker.consumer_group(group)
    dead = broker.topic(f"%DLQ%{group}", queues=1)
    messages = [broker.stored(orders, 0, b"x", MINUTE, keys=[f"order-{one}"]) for one in range(number)]
    for message in messages:
        given_up.dead_letter(broker, of_group, dead, message, 16, MINUTE, reason)
    return [str(message.message_id) for message in messages]


def test_groups_are_listed_by_their_dead_letters_without_the_redriven(broker: Broker, ada: Operator) -> None:
    orders = broker.topic("orders")
    for group, number in (("few", 1), ("many", 3), ("none", 0)):
        of_group, dead = broker.consumer_group(group), broker.topic(f"%DLQ%{group}", queues=1)
        for _ in range(number):
            given_up.dead_letter(broker, of_group, dead, broker.stored(orders, 0, b"x", MINUTE), 16, MINUTE)
        if group == "many":
            given_up.redriven(broker, of_group, 1)

    rows = ada.sees("dead-letters/").table("dead-letters")

    assert [row[:2] for row in rows] == [["many", "2"], ["few", "1"]]
    assert metric(ada, "mqbroker_dead_letters", consumer_group="many") == 2


def test_a_letter_shows_its_message_its_attempts_and_the_last_reason(broker: Broker, ada: Operator) -> None:
    [message] = letters(broker, "mail", 1, reason="no such address")

    page = ada.sees("dead-letters/mail/")

    [row] = page.table("letters")
    assert row[:6] == ["0", message, "orders", "order-0", "–", "17"]
    assert row[7] == "no such address"
    assert "no such address" in ada.follows(page, message).text


def test_letters_are_summed_by_what_they_have_in_common_and_each_narrows_the_list(
    broker: Broker, ada: Operator
) -> None:
    orders, coupons, mail = broker.topic("orders"), broker.topic("coupons"), broker.consumer_group("mail")
    dead = broker.topic("%DLQ%mail", queues=1)
    for topic, tags, retries, ago, reason in (
        (orders, "paid", 16, timedelta(0), "no such address"),
        (orders, None, 16, timedelta(0), "no such address"),
        (coupons, "paid", 0, timedelta(hours=5), None),
        (orders, "paid", 16, timedelta(0), "no such address"),
    ):
        message = broker.stored(topic, 0, b"x", MINUTE, tags=tags)
        last = given_up.dead_letter(broker, mail, dead, message, retries, ago, reason=reason)
    given_up.redriven(broker, mail, last)

    page = ada.sees("dead-letters/mail/")

    words = page.text.partition("What they have in common")[2]
    for sums in ("no such address 2 none 1", "orders 2 coupons 1", "paid 2 none 1", "17 2 1 1"):
        assert sums in words
    for link, offsets in (("no such address", ["1", "0"]), ("coupons", ["2"]), ("paid", ["2", "0"])):
        assert [row[0] for row in ada.follows(page, link).table("letters")] == offsets
    both = ada.follows(ada.follows(page, "no such address"), "paid")
    assert [row[0] for row in both.table("letters")] == ["0"]
    assert len(ada.follows(both, "Show all").table("letters")) == 3
    hours = [row[0] for row in ada.sees("dead-letters/mail/?attempts=1").table("letters")]
    assert hours == ["2"]


def test_letters_of_a_deleted_topic_are_summed_and_listed_by_it(broker: Broker, ada: Operator) -> None:
    [message] = letters(broker, "mail", 1)
    broker.connection.execute("DELETE FROM topic WHERE name = 'orders'")

    page = ada.sees("dead-letters/mail/")
    [link] = [words for words in page.links if words.startswith("(deleted topic ")]

    assert [row[1] for row in ada.follows(page, link).table("letters")] == [message]


def test_letters_go_on_page_by_page_the_latest_first_without_the_redriven(broker: Broker, ada: Operator) -> None:
    ids = letters(broker, "mail", 60)
    [group] = broker.connection.execute("SELECT id FROM consumer_group")
    given_up.redriven(broker, group.id, 59)

    page = ada.sees("dead-letters/mail/")
    older = ada.follows(page, "Older letters")

    assert [row[1] for row in page.table("letters") + older.table("letters")] == ids[58::-1]
    assert "Older letters" not in older.links


def test_a_group_without_letters_and_one_that_is_not_there_are_sentences(broker: Broker, ada: Operator) -> None:
    broker.consumer_group("mail")

    assert "mail has no dead letter" in ada.sees("dead-letters/mail/").text
    assert ada.sees("dead-letters/nothing/").status == 404
    assert "No consumer group has a dead letter" in ada.sees("dead-letters/").text
