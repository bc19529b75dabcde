"""Transactions over the protocol: one decision, whoever gives it, and questions over the telemetry stream."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from mqbroker.rocketmq.protocol.definition_pb2 import MessageType, TransactionResolution, TransactionSource
from mqbroker.rocketmq.protocol.service_pb2 import RecoverOrphanedTransactionCommand
from tests.broker.characters import name
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import told
from tests.rocketmq.conftest import Gateway
from tests.rocketmq.stub import Client, Stream, message, of_producer, seconds

COMMIT, ROLLBACK = TransactionResolution.COMMIT, TransactionResolution.ROLLBACK
UNKNOWN = TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED
CHECK = TransactionSource.SOURCE_SERVER_CHECK
OK, ENDED = 20000, 40008


def begin(client: Client, topic: str, body: bytes = b"tea", **system: object) -> str:
    """A half message; returns its transaction."""
    [entry] = client.send(message(topic, body, MessageType.TRANSACTION, **system)).entries
    assert entry.status.code == OK
    return entry.transaction_id


def question(stream: Stream) -> RecoverOrphanedTransactionCommand:
    """The next question; settings that are answered meanwhile are passed over."""
    while True:
        command = stream.read()
        if command.HasField("recover_orphaned_transaction_command"):
            return command.recover_orphaned_transaction_command


def test_a_committed_message_comes_and_a_rolled_back_one_never(client: Client, orders: str) -> None:
    committed = begin(client, orders, b"tea")
    rolled_back = begin(client, orders, b"coffee")

    assert client.received("coupons", orders, timeout=1) == []
    assert client.end(orders, rolled_back, ROLLBACK) == OK
    assert client.end(orders, committed, COMMIT) == OK

    [received] = client.received("coupons", orders)
    assert (received.body, received.system_properties.message_type) == (b"tea", MessageType.TRANSACTION)
    assert client.received("coupons", orders, timeout=1) == []


def test_the_transaction_has_the_id_of_its_message(client: Client, orders: str) -> None:
    half = message(orders, b"tea", MessageType.TRANSACTION)

    [entry] = client.send(half).entries

    assert entry.message_id == half.system_properties.message_id
    assert uuid.UUID(entry.transaction_id).hex.upper() == entry.message_id[2:]


def test_the_first_decision_stands(client: Client, orders: str) -> None:
    transaction = begin(client, orders)
    assert client.end(orders, transaction, ROLLBACK) == OK

    assert client.end(orders, transaction, COMMIT) == ENDED
    assert client.end(orders, transaction, ROLLBACK) == OK


def test_an_end_without_a_decision_leaves_it_open(client: Client, broker: RunningBroker, orders: str) -> None:
    transaction = begin(client, orders)

    assert client.end(orders, transaction, UNKNOWN) == OK
    assert told(broker.wire(), transaction)["state"] == "PREPARED"
    assert client.end(orders, transaction, COMMIT) == OK


def test_ends_that_race_over_both_protocols_have_one_outcome(
    client: Client, broker: RunningBroker, orders: str
) -> None:
    wire = broker.wire()
    for number in range(30):
        transaction = begin(client, orders, b"%d" % number)
        with ThreadPoolExecutor() as pool:
            by_grpc = pool.submit(client.end, orders, transaction, COMMIT)
            by_http = pool.submit(
                wire.post,
                f"/v1/transactions/{transaction}/end",
                {"producer_group": orders, "state": "ROLLBACK"},
            )
        outcome = told(broker.wire(), transaction)["state"]
        assert (by_grpc.result(), by_http.result().status) == {
            "COMMITTED": (OK, 409),
            "ROLLED_BACK": (ENDED, 200),
        }[outcome]


def test_a_lost_end_is_asked_for_over_the_stream_of_another_producer(
    client: Client, other: Client, broker: RunningBroker, orders: str
) -> None:
    half = message(orders, b"\xfftea", MessageType.TRANSACTION, tag="a", keys=["k"], properties={"price": "3"})
    [entry] = client.send(half).entries
    client.channel.close()

    with other.telemetry() as stream:
        stream.is_told(of_producer(orders))
        asked = question(stream)

    system = asked.message.system_properties
    assert (asked.transaction_id, asked.message.body, asked.message.topic.name) == (
        entry.transaction_id,
        b"\xfftea",
        orders,
    )
    assert (system.message_id, system.tag, list(system.keys)) == (entry.message_id, "a", ["k"])
    assert dict(asked.message.user_properties) == {"price": "3"}
    assert other.end(orders, asked.transaction_id, COMMIT, CHECK) == OK
    assert told(broker.wire(), entry.transaction_id)["state"] == "COMMITTED"
    history = broker.wire().get(f"/v1/transactions/{entry.transaction_id}").document
    assert history["history"][-1]["by"] == "check"


def test_a_client_that_opens_its_stream_again_is_asked_over_the_new_one(client: Client, orders: str) -> None:
    with client.telemetry() as earlier:
        earlier.is_told(of_producer(orders))
        with client.telemetry() as stream:
            stream.is_told(of_producer())
            transaction = begin(client, orders)

            assert question(stream).transaction_id == transaction

    # The topics of the earlier stream have gone with the client: the checks of others go on.
    with client.telemetry() as stream:
        stream.is_told(of_producer(orders))
        assert question(stream).transaction_id == transaction
        client.end(orders, transaction, COMMIT, CHECK)


def test_a_producer_is_known_by_the_half_that_it_sends(client: Client, orders: str) -> None:
    with client.telemetry() as stream:
        stream.is_told(of_producer())
        transaction = begin(client, orders)

        assert question(stream).transaction_id == transaction
        client.end(orders, transaction, COMMIT, CHECK)


def test_without_a_stream_no_check_is_counted(client: Client, broker: RunningBroker, orders: str) -> None:
    transaction = begin(client, orders)
    time.sleep(3)  # three times its immunity: what is asserted is that nothing happens

    found = broker.wire().get(f"/v1/transactions/{transaction}").document

    assert (found["state"], found["check_times"]) == ("PREPARED", 0)
    client.end(orders, transaction, ROLLBACK)


def test_immunity_is_what_the_message_asks_for(client: Client, broker: RunningBroker, orders: str) -> None:
    with client.telemetry() as stream:
        stream.is_told(of_producer(orders))
        immune = begin(client, orders, b"later", orphaned_transaction_recovery_duration=seconds(600))
        due = begin(client, orders, b"now")

        assert question(stream).transaction_id == due

    found = broker.wire().get(f"/v1/transactions/{immune}").document
    assert found["check_times"] == 0
    for transaction in (immune, due):
        client.end(orders, transaction, ROLLBACK)


def test_a_group_whose_producer_has_a_stream_is_seen_as_asked(
    client: Client, broker: RunningBroker, orders: str
) -> None:
    begun = begin(client, orders)
    with client.telemetry() as stream:
        stream.is_told(of_producer(orders))
        question(stream)
        client.end(orders, begun, COMMIT, CHECK)

        with psycopg.connect(broker.direct_url, autocommit=True) as control:
            asks = "SELECT connections FROM presence WHERE role = 'producer' AND group_name = %s"
            eventually(lambda: control.execute(asks, [orders]).fetchall() == [(1,)], within_seconds=15)


def test_the_revoked_key_of_one_producer_holds_up_no_other(
    gateway: Gateway, client: Client, broker: RunningBroker, orders: str, coupons: str
) -> None:
    wire = broker.wire()
    made = wire.post("/v1/api-keys", {"name": name("key"), "scopes": ["produce:*"]}).document
    with Client(gateway.address, made["key"]) as revoked, revoked.telemetry() as without_key:
        without_key.is_told(of_producer(orders))
        lost = begin(revoked, orders)
        wire.call("DELETE", f"/v1/api-keys/{made['name']}")
        with client.telemetry() as stream:
            stream.is_told(of_producer(coupons))
            transaction = begin(client, coupons)

            assert question(stream).transaction_id == transaction
            client.end(coupons, transaction, COMMIT, CHECK)

    client.end(orders, lost, ROLLBACK)


@pytest.mark.parametrize("resolution", [COMMIT, ROLLBACK])
def test_checks_go_on_after_one_that_decides_nothing(
    resolution: TransactionResolution, client: Client, broker: RunningBroker, orders: str
) -> None:
    with client.telemetry() as stream:
        stream.is_told(of_producer(orders))
        transaction = begin(client, orders)
        assert question(stream).transaction_id == transaction
        assert client.end(orders, transaction, UNKNOWN, CHECK) == OK
        assert question(stream).transaction_id == transaction
        assert client.end(orders, transaction, resolution, CHECK) == OK

    assert told(broker.wire(), transaction)["state"] == ("COMMITTED" if resolution == COMMIT else "ROLLED_BACK")
