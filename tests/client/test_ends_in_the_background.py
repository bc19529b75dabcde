"""An end that is not waited for is sent in the background, together with others, and within a limit of time."""

import subprocess
import sys
import time
from uuid import uuid4

from mqbroker_client import Broker, LocalTransactionState, Producer, Retry

from tests.broker.polling import at_this_load
from tests.client.answers import COMMITTED
from tests.client.pages import environment
from tests.client.servers import ScriptedServer, Silence, busy, scripted
from tests.client.test_coalescing import Gate, bulk_of, one, paths, results

PROGRAM = """
import sys, uuid
from mqbroker_client import Broker, LocalTransactionState, Producer

producer = Producer(Broker(sys.argv[1], "mq_key"), "shop")
producer.end(uuid.uuid4(), LocalTransactionState.COMMIT, wait=False)
"""


def producer_of(server: ScriptedServer) -> Producer:
    return Producer(Broker(server.url, "mq_key", retry=Retry(tries=2, seconds=5)), "shop")


def end(producer: Producer) -> None:
    producer.end(uuid4(), LocalTransactionState.COMMIT, wait=False)


def test_ends_are_sent_together_while_one_is_under_way_and_all_by_the_time_of_close() -> None:
    gate = Gate(results)
    with scripted(gate, results) as server:
        producer = producer_of(server)
        end(producer)
        server.wait_for(requests=1)
        for _ in range(3):
            end(producer)
        gate.opened.set()
        producer.broker.close()

    assert [path.rsplit("/")[-1] for path in paths(server)] == ["end", "bulk"]
    assert [each["op"] for each in server.asked[1].body["operations"]] == ["end"] * 3


def test_an_end_that_the_broker_was_too_busy_for_is_repeated() -> None:
    gate = Gate(results)
    with scripted(gate, lambda asked: bulk_of([busy(), one(asked.body["operations"][1])]), results) as server:
        producer = producer_of(server)
        end(producer)
        server.wait_for(requests=1)
        end(producer)
        end(producer)
        gate.opened.set()
        producer.broker.close()

    assert len(server.asked) == 3
    assert server.asked[1].body["operations"][0]["transaction_id"] in server.asked[2].path


def test_close_waits_no_longer_than_its_time() -> None:
    with scripted(Silence()) as server:
        producer = producer_of(server)
        began = time.monotonic()
        end(producer)
        producer.broker.close(timeout_seconds=0.1)
        took = time.monotonic() - began

    assert took < at_this_load(1)


def test_the_end_of_a_program_sends_what_it_left() -> None:
    with scripted(COMMITTED) as server:
        subprocess.run([sys.executable, "-c", PROGRAM, server.url], env=environment(), check=True, timeout=300)

    assert server.asked[0].body["state"] == "COMMIT"
