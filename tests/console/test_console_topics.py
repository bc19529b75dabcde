"""Promises of the pages of topics, queues and delays."""

from datetime import timedelta

from tests.console.operators import Operator
from tests.console.rows import Broker


def test_a_topic_shows_how_far_each_queue_reaches(broker: Broker, ada: Operator) -> None:
    orders = broker.topic("orders", queues=3)
    for age in (30, 20, 10):
        broker.visible(broker.stored(orders, 1, b"x", timedelta(minutes=age)))
    broker.insert("queue_floor", topic_id=orders, queue_id=1, min_offset=1)
    broker.insert("queue_floor", topic_id=orders, queue_id=2, min_offset=40)

    rows = ada.sees("topics/orders/").table("queues")

    assert [row[:4] for row in rows] == [
        ["Queue 0", "0", "0", "0"],
        ["Queue 1", "1", "3", "2"],
        ["Queue 2", "40", "40", "0"],
    ]
    assert [row[4].split()[0] for row in rows] == ["never", "10", "never"]


def test_a_queue_shows_its_newest_entries_and_leads_to_older_ones(broker: Broker, ada: Operator) -> None:
    orders = broker.topic("orders", queues=1)
    for number in range(60):
        broker.visible(broker.stored(orders, 0, b"x", timedelta(minutes=1), tags="paid", keys=[f"order-{number}"]))

    page = ada.sees("topics/orders/?queue=0")

    rows = page.table("entries")
    assert [row[0] for row in rows] == [str(offset) for offset in range(59, 9, -1)]
    assert rows[0][3:5] == ["paid", "order-59"]
    older = ada.follows(page, "Older entries")
    assert [row[0] for row in older.table("entries")] == [str(offset) for offset in range(9, -1, -1)]
    assert ada.follows(older, "Newest").table("entries")[0][0] == "59"


def test_an_entry_whose_message_was_dropped_says_so(broker: Broker, ada: Operator) -> None:
    orders = broker.topic("orders", queues=1)
    broker.visible(broker.stored(orders, 0, b"x", timedelta(minutes=1)))
    broker.connection.execute("DELETE FROM commit_log")

    [row] = ada.sees("topics/orders/").table("entries")

    assert row[:2] == ["0", "its segment was dropped by retention"]


def test_topics_are_listed_with_what_their_queues_hold(broker: Broker, ada: Operator) -> None:
    broker.topic("stock", queues=2)
    orders = broker.topic("orders", queues=2)
    for queue in (0, 1, 1):
        broker.visible(broker.stored(orders, queue, b"x", timedelta(minutes=1)))

    rows = {row[0]: row[1:3] for row in ada.sees("topics/").table("topics")}

    assert rows["orders"] == ["2", "3"]
    assert rows["stock"] == ["2", "0"]
    assert "SCHEDULE_TOPIC_XXXX" not in rows
    own = {row[0]: row[1:3] for row in ada.sees("topics/?own=1").table("topics")}
    assert own["SCHEDULE_TOPIC_XXXX"] == ["18", "0"]
    assert own.keys().isdisjoint(rows)


def test_topics_are_narrowed_by_a_part_of_their_names(broker: Broker, ada: Operator) -> None:
    for name in ("orders", "re-orders", "stock", "%RETRY%orders"):
        broker.topic(name, queues=1)

    assert [row[0] for row in ada.sees("topics/?q=ORDER").table("topics")] == ["orders", "re-orders"]
    assert [row[0] for row in ada.sees("topics/?own=1&q=order").table("topics")] == ["%RETRY%orders"]
    assert "No topic matches" in ada.sees("topics/?q=coupons").text


def test_topics_go_on_page_by_page(broker: Broker, ada: Operator) -> None:
    for number in range(30):
        broker.topic(f"orders-{number:02}", queues=1)

    page = ada.sees("topics/")

    names = [row[0] for row in page.table("topics") + ada.follows(page, "Next page").table("topics")]
    assert [name for name in names if name.startswith("orders-")] == [f"orders-{number:02}" for number in range(30)]


def test_a_name_with_signs_of_addresses_leads_to_its_own_page(broker: Broker, ada: Operator) -> None:
    broker.topic("%RETRY%cou|pons", queues=1)

    page = ada.follows(ada.sees("topics/?own=1"), "%RETRY%cou|pons")

    assert page.status == 200
    assert "Topic %RETRY%cou|pons" in page.text


def test_a_topic_that_is_not_there_is_a_sentence(broker: Broker, ada: Operator) -> None:
    page = ada.sees("topics/nothing/")

    assert page.status == 404
    assert "Topic nothing does not exist." in page.text


def test_a_level_shows_what_waits_in_it_and_when_the_first_is_due(broker: Broker, ada: Operator) -> None:
    for minutes in (5, 6, 7):
        broker.delayed(level=5, due_in=timedelta(minutes=minutes))
    broker.released(level=5, next_offset=1)

    rows = ada.sees("delays/").table("levels")

    assert rows[3] == ["4", "30 s", "0", "–", "0", "0", "0", "–", "–"]
    assert rows[4][:3] == ["5", "1 min", "2"]
    assert rows[4][3].startswith(("in 5 min", "in 6 min"))
    assert rows[4][4:6] == ["0", "2"]
    assert ada.sees("").figure("delayed") == "2"


def test_timers_are_listed_by_when_they_are_due(broker: Broker, ada: Operator) -> None:
    orders = broker.topic("orders")
    for minutes in (9, 4):
        message = broker.stored(orders, 0, b"x", timedelta(minutes=1))
        known = {"log_segment": 1, "log_offset": message.log_offset, "tags_code": 0, "reconsume_times": 0}
        due = {"id": message.message_id, "due_at": broker.now + timedelta(minutes=minutes)}
        broker.insert("timer", message_id=message.message_id, topic_id=orders, queue_id=0, **known, **due)

    page = ada.sees("delays/")

    rows = page.table("timers")
    assert [row[1] for row in rows] == ["orders", "orders"]
    assert [row[2].split()[1] for row in rows] in (["3", "8"], ["4", "9"])
    assert page.links[rows[0][0]].startswith("/console/messages/")


def test_the_topic_of_discarded_messages_shows_their_checks_and_no_retries(broker: Broker, ada: Operator) -> None:
    discarded = broker.connection.execute("SELECT id FROM topic WHERE name = 'TRANS_CHECK_MAX_TIME_TOPIC'").fetchone()
    assert discarded is not None
    broker.visible(broker.stored(discarded[0], 0, b"x", timedelta(minutes=1)))
    orders = broker.topic("orders", queues=1)
    broker.visible(broker.stored(orders, 0, b"x", timedelta(minutes=1)))

    of_discards, of_orders = (ada.sees(f"topics/{name}/").text for name in ("TRANS_CHECK_MAX_TIME_TOPIC", "orders"))

    assert "Checks" in of_discards
    assert "Retries" not in of_discards
    assert "Retries" in of_orders


def test_a_topic_that_takes_no_messages_yet_says_so_on_its_page_in_the_list_and_in_the_overview(
    broker: Broker, ada: Operator
) -> None:
    opens = broker.now + timedelta(hours=1)
    for name, sends_from in (("orders", opens), ("stock", broker.now - timedelta(hours=1))):
        broker.topic(name, queues=1)
        broker.connection.execute("UPDATE topic SET sends_from = %s WHERE name = %s", (sends_from, name))

    rows = {row[0]: row[4] for row in ada.sees("topics/").table("topics")}
    page, open_one, overview = ada.sees("topics/orders/").text, ada.sees("topics/stock/").text, ada.sees("").text

    until = f"{opens:%Y-%m-%d %H:%M:%S}"
    assert "takes no messages until" in page
    assert until in page
    assert "takes no messages until" not in open_one
    assert until in rows["orders"]
    assert "until" not in rows["stock"]
    assert f"orders takes no messages until {until} UTC" in overview
    assert "stock takes no messages" not in overview
