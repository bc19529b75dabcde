"""A broker at several addresses, or in the environment; groups that are made or awaited; retries that are logged."""

import logging
import re

import pytest
from mqbroker_client import Admin, Broker, CheckPoller, HalfMessage, LocalTransactionState, Producer
from mqbroker_client.aio import AsyncBroker, AsyncProducer
from mqbroker_client.core import errors

from tests.broker.endpoints import ProducerEndpoint
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import ended
from tests.client.answers import SENT, problem
from tests.client.servers import Answer, busy, scripted

CLOSED = "http://127.0.0.1:1"


def test_an_address_that_cannot_be_reached_gives_way_to_the_next() -> None:
    with scripted(SENT) as server:
        broker = Broker([CLOSED, server.url], "mq_key")
        producer = Producer(broker, "shop")
        producer.send("orders", b"1")
        producer.send("orders", b"2")

    assert broker.url == server.url
    assert len(server.asked) == 2


async def test_an_address_gives_way_in_an_event_loop_too() -> None:
    with scripted(SENT) as server:
        async with AsyncBroker(f"{CLOSED}, {server.url}/", "mq_key") as broker:
            await AsyncProducer(broker, "shop").send("orders", b"1")

    assert broker.url == server.url


AWAY = Answer(502, b"<html>Bad Gateway</html>", {"Content-Type": "text/html"})


def test_an_address_whose_gateway_has_no_broker_gives_way_and_a_busy_broker_does_not() -> None:
    with scripted(AWAY) as away, scripted(busy("0.01"), SENT) as server:
        broker = Broker([away.url, server.url], "mq_key")
        Producer(broker, "shop").send("orders", b"1")

    assert (len(away.asked), len(server.asked)) == (1, 2)


async def test_a_gateway_without_a_broker_gives_way_in_an_event_loop_too() -> None:
    with scripted(AWAY) as away, scripted(SENT) as server:
        async with AsyncBroker([away.url, server.url], "mq_key") as broker:
            await AsyncProducer(broker, "shop").send("orders", b"1")

    assert (len(away.asked), len(server.asked)) == (1, 1)


HTML = {"Content-Type": "text/html"}
OF_OTHERS = {
    "a broken server": Answer(500, b"<html>Internal Server Error</html>", HTML),
    "another site": Answer(404, b"<html>Not Found</html>", HTML),
    "a log-in page": Answer(200, b"<html>Log in</html>", HTML),
    "another program": Answer(404, {"detail": "Not Found"}),
}


@pytest.mark.parametrize("answer", OF_OTHERS.values(), ids=OF_OTHERS)
async def test_an_address_at_which_something_else_answers_gives_way_to_the_next(answer: Answer) -> None:
    with scripted(answer) as other, scripted(SENT) as server:
        broker = Broker([other.url, server.url], "mq_key")
        Producer(broker, "shop").send("orders", b"1")
        async with AsyncBroker([other.url, server.url], "mq_key") as in_loop:
            await AsyncProducer(in_loop, "shop").send("orders", b"1")

    assert (broker.url, in_loop.url) == (server.url, server.url)
    assert (len(other.asked), len(server.asked)) == (2, 2)


def test_a_refusal_of_the_broker_gives_way_to_no_other_address() -> None:
    with scripted(problem(500, "internal_error", "It is in the log.")) as server, scripted(SENT) as other:
        producer = Producer(Broker([server.url, other.url], "mq_key"), "shop")
        with pytest.raises(errors.BrokerError, match=r"internal_error \(500\)"):
            producer.send("orders", b"1")

    assert (len(server.asked), other.asked) == (1, [])


def test_the_environment_names_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted(SENT) as server:
        monkeypatch.setenv("MQBROKER_URL", server.url)
        monkeypatch.setenv("MQBROKER_API_KEY", "mq_key\n")
        Producer(Broker.from_env(timeout_seconds=5), "shop").send("orders", b"1")

    assert server.asked[0].headers["authorization"] == "Bearer mq_key"


@pytest.mark.parametrize("kind", [Broker, AsyncBroker])
def test_an_environment_without_the_key_says_what_to_set(
    kind: type[Broker] | type[AsyncBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQBROKER_URL", CLOSED)
    monkeypatch.delenv("MQBROKER_API_KEY", raising=False)

    with pytest.raises(ValueError, match="the environment has no MQBROKER_API_KEY: set MQBROKER_URL and"):
        kind.from_env()


def test_a_retry_is_logged_with_its_call_and_reason(caplog: pytest.LogCaptureFixture) -> None:
    with scripted(busy(), SENT) as server, caplog.at_level(logging.WARNING):
        Producer(Broker(server.url, "mq_secret"), "shop").send("orders", b"1")

    [record] = caplog.records
    assert re.fullmatch(
        r"POST /v1/messages: try 1 of 5 failed, the next in 0\.0\d s: system_busy \(503\): .*", record.getMessage()
    )
    assert "mq_secret" not in caplog.text


def test_the_group_of_an_endpoint_is_made(broker: RunningBroker, endpoint: ProducerEndpoint, orders: str) -> None:
    admin = Admin(broker.client())
    with pytest.raises(errors.GroupNotExist):
        admin.broker.call("GET", f"/v1/producer-groups/{orders}")

    registered = admin.register_endpoint(orders, endpoint.url)

    found = admin.broker.call("GET", f"/v1/producer-groups/{orders}/endpoints")
    assert [str(each["id"]) for each in found["results"]] == [registered.id]


def test_a_poller_may_start_before_its_group_is_there(
    broker: RunningBroker, orders: str, caplog: pytest.LogCaptureFixture
) -> None:
    def check(half: HalfMessage) -> LocalTransactionState:
        return LocalTransactionState.COMMIT

    producer = Producer(broker.client(), orders)
    poller = CheckPoller(producer, check)
    with caplog.at_level(logging.INFO, "mqbroker_client.core.polling"):
        poller.start()
        eventually(lambda: caplog.messages)
        transaction = producer.begin(orders, b"1")
        found = eventually(lambda: ended(broker.wire(), str(transaction.transaction_id)))
        poller.stop()

    assert found["state"] == "COMMITTED"
    assert {record.levelname for record in caplog.records} == {"INFO"}
    assert caplog.messages[0] == f"{orders} is not there yet: its checks are fetched when it is"
