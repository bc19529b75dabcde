"""RocketMQ's own clients for Python and Node, as their users install them, beside HTTP."""

import base64
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.broker.characters import name
from tests.broker.polling import eventually
from tests.broker.proxy import LossyProxy
from tests.broker.running import RunningBroker
from tests.broker.tellings import told
from tests.rocketmq.conftest import Gateway
from tests.rocketmq.official import Failed, Language, Official


def body(given: dict[str, str]) -> bytes:
    return base64.b64decode(given["body"])


def produces(program: Official, topic: str, answer: str = "UNKNOWN") -> None:
    """Starts a producer, which answers checks so."""
    program.do("produce", topics=[topic], answer=answer)


def sends_once(program: Official, topic: str) -> None:
    """Starts a producer, and sends."""
    produces(program, topic)
    program.do("send", topic=topic, body=b"tea")


def subscribes(program: Official, group: str, topic: str, **filtered: str) -> None:
    """Starts a simple consumer."""
    program.do("subscribe", group=group, topic=topic, wait=5, **filtered)


def test_a_simple_and_a_push_consumer_get_every_field(program: Official, second: Official, orders: str) -> None:
    fields = {"tag": "drinks", "keys": ["k1"], "properties": {"price": "3"}}
    produces(program, orders)
    sent = program.do("send", topic=orders, body=b"\xfftea", **fields)
    in_order = program.do("send", topic=orders, body=b"biscuit", group="customer")

    subscribes(program, "coupons", orders)
    received = {body(one): one for one in program.receives(2)}
    second.do("push", group="readers", topic=orders)
    eventually(lambda: len(second.events) == 2, within_seconds=30)
    pushed = {body(one): one for one in second.events}

    for found in (received, pushed):
        tea, biscuit = found[b"\xfftea"], found[b"biscuit"]
        assert {key: tea[key] for key in fields} == fields
        assert (tea["topic"], tea["message_id"], tea["attempt"]) == (orders, sent["message_id"], 1)
        assert (biscuit["group"], biscuit["message_id"]) == ("customer", in_order["message_id"])


def test_http_and_a_client_read_each_other(
    program: Official, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"of http", tags="a", properties={"price": "3"})
    produces(program, orders)
    program.do("send", topic=orders, body=b"of grpc", tag="a", properties={"price": "4"})

    subscribes(program, "coupons", orders)
    by_grpc = {body(one): one["properties"] for one in program.receives(2)}
    by_http = [one for _ in range(4) for one in consumer.receive(orders, wait_seconds=1)]

    assert by_grpc == {b"of http": {"price": "3"}, b"of grpc": {"price": "4"}}
    assert {one.body: one.message.properties for one in by_http} == by_grpc


def test_transactions_are_committed_and_rolled_back(program: Official, broker: RunningBroker, orders: str) -> None:
    produces(program, orders)
    committed, rolled_back = (program.do("begin", topic=orders, body=one) for one in (b"tea", b"coffee"))
    program.do("end", transaction_id=committed["transaction_id"], state="COMMIT")
    program.do("end", transaction_id=rolled_back["transaction_id"], state="ROLLBACK")

    with pytest.raises(Failed, match="40008"):
        program.do("end", transaction_id=rolled_back["transaction_id"], state="COMMIT")
    subscribes(program, "coupons", orders)
    assert [body(one) for one in program.receives(1)] == [b"tea"]
    assert told(broker.wire(), rolled_back["transaction_id"])["state"] == "ROLLED_BACK"


def test_the_half_of_a_killed_process_is_decided_by_the_checker_of_another(
    program: Official, second: Official, broker: RunningBroker, orders: str
) -> None:
    produces(program, orders)
    half = program.do("begin", topic=orders, body=b"tea")
    program.kill()

    produces(second, orders, "COMMIT")

    eventually(lambda: told(broker.wire(), half["transaction_id"])["state"] == "COMMITTED", within_seconds=30)
    assert second.bodies("checked") == [b"tea"]
    subscribes(second, "coupons", orders)
    assert [body(one) for one in second.receives(1)] == [b"tea"]


def test_messages_of_a_group_come_in_order_past_one_that_fails(
    program: Official, second: Official, broker: RunningBroker, orders: str
) -> None:
    group = name("coupons")
    admin = Admin(broker.client())
    admin.create_topic(orders, queues=1)
    policy = {"kind": "table", "delay_seconds": [1]}
    admin.create_consumer_group(group, ordered=True, max_reconsume_times=1, retry_policy=policy)
    produces(program, orders)
    for number in range(5):
        program.do("send", topic=orders, body=b"%d" % number, group="customer")

    second.do("push", group=group, topic=orders, fails=[b"2"])

    eventually(lambda: second.bodies()[-1:] == [b"4"], within_seconds=60)
    assert list(dict.fromkeys(second.bodies())) == [b"0", b"1", b"2", b"3", b"4"]
    subscribes(program, name("readers"), f"%DLQ%{group}")
    assert [body(one) for one in program.receives(1)] == [b"2"]


def test_a_delayed_message_is_recalled_before_its_time_and_not_after(program: Official, orders: str) -> None:
    produces(program, orders)
    soon, later = (
        program.do("send", topic=orders, body=one, deliver_at=int(time.time()) + seconds)
        for one, seconds in ((b"soon", 2), (b"later", 600))
    )
    subscribes(program, "coupons", orders)

    assert program.do("recall", topic=orders, recall_handle=later["recall_handle"]) == {
        "message_id": later["message_id"]
    }
    assert [body(one) for one in program.receives(1)] == [b"soon"]
    with pytest.raises(Failed, match="40400"):
        program.do("recall", topic=orders, recall_handle=soon["recall_handle"])


def test_an_invisible_time_ends_and_is_extended(program: Official, second: Official, orders: str) -> None:
    produces(program, orders)
    program.do("send", topic=orders, body=b"tea")
    for one in (program, second):
        subscribes(one, "coupons", orders)
    [first] = program.receives(1, invisible=3, ack=False)
    program.do("extend", invisible=12)

    assert second.do("receive", invisible=30)["messages"] == []
    [again] = second.receives(1)

    assert (first["attempt"], again["attempt"]) == (1, 2)


def test_a_slow_listener_keeps_its_message_until_it_is_killed(language: Language, quick: Gateway, orders: str) -> None:
    """Four times the invisible time: a listener of 100 s is to that of a minute as this one, shortened."""
    with language.starts(quick.address) as slow, language.starts(quick.address) as second:
        produces(second, orders)
        second.do("send", topic=orders, body=b"tea")
        slow.do("push", group="coupons", topic=orders, seconds=600)
        eventually(lambda: slow.bodies() == [b"tea"], within_seconds=30)
        subscribes(second, "coupons", orders)
        assert [second.do("receive", invisible=30)["messages"] for _ in range(2)] == [[], []]
        assert slow.bodies() == [b"tea"]

        slow.kill()

        [again] = second.receives(1)
        assert (body(again), again["attempt"]) == (b"tea", 2)


def test_a_send_whose_answer_is_lost_is_stored_once(language: Language, plain: Gateway, orders: str) -> None:
    with LossyProxy(f"http://{plain.address}") as proxy, language.starts(urlsplit(proxy.url).netloc) as program:
        produces(program, orders)
        for number in range(10):
            proxy.answers_to_lose = 1
            program.do("send", topic=orders, body=b"%d" % number)
            assert proxy.answers_to_lose == 0
    with language.starts(plain.address) as reader:
        subscribes(reader, "coupons", orders)
        found = [body(one) for one in reader.receives(10)]
        found += [body(one) for one in reader.do("receive", invisible=30)["messages"]]

    assert sorted(found) == [b"%d" % number for number in range(10)]


def test_keys_are_refused_and_tls_serves(language: Language, tls_port: tuple[int, int], certificate: Path) -> None:
    plain, tls = tls_port
    orders = name("orders")
    roots = {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(certificate / "chain.pem")}
    with language.starts(f"127.0.0.1:{plain}", key="mq_unknown") as stranger, pytest.raises(Failed):
        sends_once(stranger, orders)
    with language.starts(f"127.0.0.1:{tls}", tls=True, **roots) as program:
        produces(program, orders, "COMMIT")
        half = program.do("begin", topic=orders, body=b"tea")
        subscribes(program, "coupons", orders)

        assert [one["message_id"] for one in program.receives(1)] == [half["message_id"]]


@pytest.mark.parametrize(
    ("filtered", "wanted"), [({"filter": "A || C"}, {b"0", b"2"}), ({"sql": "price > 1"}, {b"2", b"3"})]
)
def test_filters_choose(filtered: dict[str, str], wanted: set[bytes], program: Official, orders: str) -> None:
    produces(program, orders)
    for price, tag in enumerate("ABCD"):
        program.do("send", topic=orders, body=b"%d" % price, tag=tag, properties={"price": str(price)})

    subscribes(program, "coupons", orders, **filtered)

    assert {body(one) for one in program.receives(2)} == wanted


def test_a_bad_filter_is_refused_by_its_code(program: Official, producer: Producer, orders: str) -> None:
    producer.send(orders, b"tea")
    subscribes(program, "coupons", orders, sql="price >")

    with pytest.raises(Failed, match="40010"):
        program.do("receive", invisible=30)
