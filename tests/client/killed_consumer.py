"""A consumer that kills itself, once for each message that asks for it: before the COMMIT of its effect, or its ack."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from mqbroker_client import Broker, Consumer, Delivery
from mqbroker_client.barrier.inbox import Inbox

from tests.barrier.places import connect

# Of all threads, one dies.
dying = threading.Lock()
way, broker_url, place_url, topic, folder = sys.argv[1:]


def die_once(delivery: Delivery, moment: bytes) -> None:
    """As by `kill -9`: nothing of this process runs after it."""
    died = Path(folder, delivery.body.decode())
    if not delivery.body.startswith(moment):
        return
    with dying:
        if not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)


def pay(delivery: Delivery, connection: Any) -> None:
    connection.cursor().execute(f"INSERT INTO payments VALUES ('{delivery.body.decode()}')")
    die_once(delivery, b"before the commit")


def pay_without_inbox(delivery: Delivery) -> None:
    """The mutant: its effect is committed and noted nowhere."""
    connection = connect(place_url)
    pay(delivery, connection)
    connection.commit()
    connection.close()


pay_once = Inbox("payments", lambda: connect(place_url)).exactly_once(pay) if way == "inbox" else pay_without_inbox


def handle(delivery: Delivery) -> None:
    comes_again = Path(folder, delivery.body.decode()).exists()
    pay_once(delivery)
    die_once(delivery, b"before the ack")
    if comes_again:
        Path(folder, f"again {delivery.body.decode()}").touch()


if __name__ == "__main__":
    consumer = Consumer(Broker(broker_url, os.environ["API_KEY"]), topic)
    consumer.run(topic, handle, concurrency=4, ordered=False, invisible_seconds=1)
