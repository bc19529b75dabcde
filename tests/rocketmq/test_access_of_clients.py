"""Keys over the protocol: a signature proves the key, and the key's scopes hold as over HTTP."""

from pathlib import Path
from urllib.parse import quote

import grpc
import pytest

from mqbroker.rocketmq.protocol.definition_pb2 import Resource
from mqbroker.rocketmq.protocol.service_pb2 import (
    AckMessageEntry,
    AckMessageRequest,
    QueryAssignmentRequest,
    QueryRouteRequest,
)
from tests.broker.characters import name
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Document
from tests.rocketmq.conftest import Gateway
from tests.rocketmq.stub import ENDPOINTS, Client, message, of_consumer, of_producer

OK, UNAUTHORIZED, FORBIDDEN, WITHOUT_ID = 20000, 40100, 40300, 40017


def made_key(broker: RunningBroker, scopes: list[str], **fields: str) -> Document:
    """A new key with its name."""
    document: Document = broker.wire().post("/v1/api-keys", {"name": name("key"), "scopes": scopes, **fields}).document
    return document


def code_of_send(client: Client, topic: str) -> int:
    return int(client.send(message(topic, b"tea")).status.code)


def test_a_signature_of_another_secret_is_refused(gateway: Gateway, orders: str) -> None:
    with Client(gateway.address, secret="mq_another") as client:
        assert code_of_send(client, orders) == UNAUTHORIZED


def test_a_key_that_does_not_exist_is_refused(gateway: Gateway, orders: str) -> None:
    with Client(gateway.address, "mq_unknown") as client:
        assert code_of_send(client, orders) == UNAUTHORIZED
        assert client.receive("coupons", orders)[0] == UNAUTHORIZED


@pytest.mark.parametrize("given", ["", "Bearer x", "MQv2-HMAC-SHA1 ", "MQv2-HMAC-SHA1 Credential=, Signature="])
def test_calls_without_credentials_are_refused(given: str, client: Client) -> None:
    metadata = [(key, value) for key, value in client.metadata() if key != "authorization"]
    request = QueryRouteRequest(topic=Resource(name="orders"), endpoints=ENDPOINTS)

    status = client.call("QueryRoute", request, metadata=(*metadata, ("authorization", given))).status

    assert status.code == UNAUTHORIZED
    assert "access key" in status.message


def test_a_client_without_an_id_is_refused(client: Client) -> None:
    metadata = tuple(one for one in client.metadata() if one[0] != "x-mq-client-id")
    request = QueryRouteRequest(topic=Resource(name="orders"), endpoints=ENDPOINTS)

    assert client.call("QueryRoute", request, metadata=metadata).status.code == WITHOUT_ID


def test_signatures_in_lower_case_hold_too(client: Client, orders: str) -> None:
    metadata = tuple(
        (key, value[:-40] + value[-40:].lower() if key == "authorization" else value)
        for key, value in client.metadata()
    )
    request = QueryRouteRequest(topic=Resource(name=orders), endpoints=ENDPOINTS)

    assert client.call("QueryRoute", request, metadata=metadata).status.code == OK


def test_a_stream_without_a_key_is_answered_why_and_ends(gateway: Gateway) -> None:
    with Client(gateway.address, "mq_unknown") as client, client.telemetry() as stream:
        assert stream.is_told(of_producer("orders")).status.code == UNAUTHORIZED
        with pytest.raises(StopIteration):
            stream.read()


def test_the_scopes_of_a_key_hold(broker: RunningBroker, gateway: Gateway, client: Client, orders: str) -> None:
    key = made_key(broker, ["produce:own-*"])["key"]
    client.send(message(orders, b"tea"))
    [delivery] = client.received("coupons", orders)
    entry = AckMessageEntry(receipt_handle=delivery.system_properties.receipt_handle)
    topic, group = Resource(name=orders), Resource(name="coupons")

    with Client(gateway.address, key) as narrow:
        assert code_of_send(narrow, orders) == FORBIDDEN
        assert code_of_send(narrow, name("own-orders")) == OK
        assert narrow.receive("coupons", orders)[0] == FORBIDDEN
        assert narrow.call("QueryRoute", QueryRouteRequest(topic=topic, endpoints=ENDPOINTS)).status.code == FORBIDDEN
        assignment = QueryAssignmentRequest(topic=topic, group=group, endpoints=ENDPOINTS)
        assert narrow.call("QueryAssignment", assignment).status.code == FORBIDDEN
        assert narrow.call("AckMessage", AckMessageRequest(group=group, entries=[entry])).status.code == FORBIDDEN
        assert narrow.change("coupons", delivery, 20) == FORBIDDEN
        with narrow.telemetry() as stream:
            refused = stream.is_told(of_consumer("coupons"))
        assert (refused.status.code, refused.HasField("settings")) == (FORBIDDEN, False)


def test_a_revoked_key_is_refused_within_five_seconds(broker: RunningBroker, gateway: Gateway, orders: str) -> None:
    made = made_key(broker, ["produce:*"])
    with Client(gateway.address, made["key"]) as client:
        assert code_of_send(client, orders) == OK
        broker.wire().call("DELETE", f"/v1/api-keys/{made['name']}")

        eventually(lambda: code_of_send(client, orders) == UNAUTHORIZED, within_seconds=5)


def test_what_a_revoked_key_holds_is_renewed_no_more(broker: RunningBroker, quick: Gateway, orders: str) -> None:
    made, coupons = made_key(broker, ["produce:*", "consume:*", "read:*"]), name("coupons")
    with Client(quick.address, made["key"]) as client, Client(quick.address) as second:
        client.send(message(orders, b"tea"))
        with client.telemetry() as stream:
            stream.is_told(of_consumer(coupons))
            client.received(coupons, orders, auto_renew=True)
            assert second.received(coupons, orders, timeout=5) == []
            broker.wire().call("DELETE", f"/v1/api-keys/{made['name']}")

            [again] = second.received(coupons, orders, wait=20.0)

    assert again.body == b"tea"


def test_a_key_of_a_namespace_names_its_topics_barely(broker: RunningBroker, gateway: Gateway) -> None:
    team, orders = name("team"), name("orders")
    assert broker.wire().call("PUT", f"/v1/namespaces/{team}", b"{}").status == 201
    key = made_key(broker, ["produce:*", "consume:*", "read:*"], namespace=team)["key"]

    with Client(gateway.address, key) as client:
        client.send(message(orders, b"tea"))
        route = client.call("QueryRoute", QueryRouteRequest(topic=Resource(name=orders), endpoints=ENDPOINTS))
        [received] = client.received("coupons", orders)
        with client.telemetry() as stream:
            settings = stream.is_told(of_consumer("coupons")).settings

    assert {queue.topic.name for queue in route.message_queues} == {orders}
    assert (received.topic.name, settings.subscription.group.name) == (orders, "coupons")
    assert broker.wire().get(f"/v1/topics/{quote(f'{team}%{orders}', safe='')}").status == 200


def test_both_ports_serve_one_broker(tls_port: tuple[int, int], certificate: Path, orders: str) -> None:
    plain, tls = tls_port
    roots = (certificate / "chain.pem").read_bytes()
    with Client(f"127.0.0.1:{tls}", roots=roots) as safe, Client(f"127.0.0.1:{plain}") as open_one:
        safe.send(message(orders, b"tea"))
        assert [one.body for one in open_one.received("coupons", orders)] == [b"tea"]
        open_one.send(message(orders, b"coffee"))
        assert [one.body for one in safe.received("coupons", orders)] == [b"coffee"]
        with safe.telemetry() as stream:
            assert stream.is_told(of_producer(orders)).status.code == OK

    with Client(f"127.0.0.1:{tls}") as lost, pytest.raises(grpc.RpcError):
        code_of_send(lost, orders)


def test_a_certificate_that_is_not_there_is_said(broker: RunningBroker, tmp_path: Path) -> None:
    gateway = Gateway(broker, tmp_path, ROCKETMQ_TLS_CERTIFICATE=str(tmp_path / "none.pem"))
    gateway.child.start()
    eventually(lambda: not gateway.child.is_running(), within_seconds=30)

    assert "none.pem with the key" in gateway.log.read_text()
    assert API_KEY not in gateway.log.read_text()
