"""The life of a broker in two segments, with every form that a message, an entry and a transaction can take."""

from tests.analytics.past import Past, at_milliseconds

EVERY_BYTE = bytes(range(256))
DELETED = 999_999


def live(past: Past) -> None:
    """Writes the history: segment 1 is closed, 2 is open, 3 is ready."""
    past.segment(1, "closed")
    past.segment(2, "open")
    past.segment(3, "ready")
    orders, coupons = past.topic("orders"), past.topic("%RETRY%coupons")
    _messages(past, orders)
    _entries(past, orders, coupons)
    _transactions(past, orders, coupons)
    _of_a_team(past)


def _messages(past: Past, orders: int) -> None:
    shop = (past.group("shop"), "shop")
    past.store(1, orders, b"\x00", body_form="base64")
    past.store(1, orders, EVERY_BYTE, body_form="base64", properties={})
    past.store(1, orders, "Zażółć gęślą 🐰".encode(), keys=[], tags="")
    past.store(1, orders, b"\xff\xfe\x80 no UTF-8", keys=["", "k'1", 'k"2', "ключ", "{a,b}"], tags="płatne")
    past.store(
        1,
        orders,
        b"all",
        queue_id=3,
        group=shop,
        properties={"nul": "a\x00b", "quote": '"\\', "łódź": "🐰", "empty": "", "": "no name", "number": "1e400"},
        sharding_key="customer 7",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        born_at=at_milliseconds(1),
    )
    for form in ("zlib", "zstd"):
        past.store(1, orders, EVERY_BYTE * 20, body_form=form)
    past.store(1, DELETED, b"of a deleted topic", group=(DELETED, None))
    past.store_again(2, orders, past.messages[0])
    past.delay(past.messages[1], orders, at_milliseconds(1_790_000_000_456))
    past.delay(past.messages[2], DELETED, at_milliseconds(1))
    # One of each weight: fetched in large, in small and in single steps.
    for size in (4096, 4097, 256 * 1024, 256 * 1024 + 1, 4 * 1024 * 1024):
        past.store(2, orders, (EVERY_BYTE * (size // 256 + 1))[:size])
    for number in range(300):
        past.store(2, orders, f"order {number}".encode(), queue_id=number % 4, properties={"number": str(number)})


def _entries(past: Past, orders: int, coupons: int) -> None:
    first, second, *_ = past.messages
    [schedule] = past.connection.execute("SELECT id FROM topic WHERE name = 'SCHEDULE_TOPIC_XXXX'").fetchall()
    past.names[schedule[0]] = "SCHEDULE_TOPIC_XXXX"
    past.enqueue(1, orders, 0, 0, first, due_at=past.now())
    past.enqueue(1, orders, 0, 1, second, tags_code=2**62)
    past.enqueue(2, orders, 0, 2, first, reconsume_times=16)
    past.enqueue(2, schedule[0], 4, 0, first, tags_code=1_790_000_000_123, real_topic_id=coupons, real_queue_id=2)
    past.enqueue(2, DELETED, 0, 7, first)
    # More queues than one slice gathers.
    for queue_id in range(101):
        past.enqueue(2, coupons, queue_id, 0, second)


def _of_a_team(past: Past) -> None:
    shop = (past.group("team%shop"), "team%shop")
    orders, retries = past.topic("team%orders"), past.topic("%RETRY%team%coupons")
    sent = past.store(1, orders, b"of a team")
    past.enqueue(1, orders, 0, 0, sent)
    past.enqueue(2, retries, 0, 0, sent, reconsume_times=1)
    past.end(1, past.begin(1, shop, [orders]), "COMMIT", "producer")
    past.leave(past.begin(2, shop, [orders]), checks=0)


def _transactions(past: Past, orders: int, coupons: int) -> None:
    shop = (past.group("producers 'ü"), "producers 'ü")

    committed = past.begin(1, shop, [orders])
    past.end(1, committed, "COMMIT", "producer")

    of_three = past.begin(1, shop, [orders, coupons, orders])
    past.say(1, of_three, "UNKNOWN", "producer")
    past.check(1, of_three, endpoint_url="http://127.0.0.1:1/ü", counted=False, reason="connection refused")
    past.check(2, of_three, status=200, latency_ms=12, answer="ROLLBACK")
    past.end(2, of_three, "ROLLBACK", "check", checks=1, remark="no such order \U0001f430")

    prepared = past.begin(2, shop, [orders])
    past.say(2, prepared, "UNKNOWN", "check")
    past.leave(prepared, checks=3)

    discarded = past.begin(1, shop, [orders, coupons])
    past.say(1, discarded, "DISCARD", "retention")
    past.say(1, discarded, "RESUME", "operator")
    given_up_at = past.say(2, discarded, "DISCARD", "limit")
    past.leave(discarded, checks=15, discarded=given_up_at, by="limit")

    forgotten = past.begin(1, (DELETED, None), [orders])
    past.leave(forgotten, discarded=past.now())

    resolved = past.begin(1, shop, [orders])
    past.say(1, resolved, "DISCARD", "limit")
    past.end(2, resolved, "COMMIT", "operator", checks=15, remark="paid in cash")

    resumed = past.begin(1, shop, [orders])
    past.say(1, resumed, "DISCARD", "limit")
    past.say(2, resumed, "RESUME", "operator")
    past.leave(resumed)
