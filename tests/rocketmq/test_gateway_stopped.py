"""A regular end of the process: calls under way are ended, what they were handed is given back, and nothing fails."""

import threading
import time
from pathlib import Path

import grpc
import pytest

from tests.broker.running import RunningBroker
from tests.rocketmq.conftest import SERVERS, running
from tests.rocketmq.stub import Client, message, of_consumer, of_producer


@pytest.mark.parametrize("server", SERVERS)
def test_an_end_under_load_fails_nothing(server: str, broker: RunningBroker, tmp_path: Path, orders: str) -> None:
    is_over = threading.Event()

    def sends(address: str) -> None:
        with Client(address) as client:
            while not is_over.is_set():
                try:
                    client.send(message(orders, b"tea"))
                except grpc.RpcError:
                    return

    def waits(address: str) -> None:
        with Client(address) as client, client.telemetry() as stream:
            stream.is_told(of_consumer("coupons"))
            while not is_over.is_set():
                try:
                    client.ack("coupons", *client.received("coupons", orders, auto_renew=True, attempt_id="1"))
                except (grpc.RpcError, ValueError, AssertionError):
                    return

    # `running` fails for what the process has logged of a failure.
    with running(broker, tmp_path, ROCKETMQ_SERVER=server) as gateway:
        threads = [threading.Thread(target=work, args=[gateway.address]) for work in (sends, waits) * 4]
        for thread in threads:
            thread.start()
        with Client(gateway.address) as client, client.telemetry() as stream:
            stream.is_told(of_producer(orders))
            time.sleep(1)
            gateway.child.ask_to_stop()
            gateway.child.stop()
        is_over.set()
        for thread in threads:
            thread.join(120)

    assert not gateway.child.is_running()
