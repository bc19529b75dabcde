"""A message that kills the process of its consumer, which handles several at once, is the only dead letter."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mqbroker_client import Admin, Producer

from tests.broker.characters import name
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Document, Wire
from tests.client.mortal import DEADLY

MESSAGES = [b"order 1", b"order 2", DEADLY, *(b"order %d" % number for number in range(4, 11))]


PLAIN: dict[str, Any] = {}
ORDERED: dict[str, Any] = {"ordered": True}
FAIR: dict[str, Any] = {"fair_by": "sharding_key"}


@pytest.mark.parametrize(
    ("settings", "kind", "concurrency"),
    [
        (PLAIN, "threads", 1),
        (PLAIN, "threads", 8),
        (PLAIN, "tasks", 8),
        (ORDERED, "threads", 8),
        (FAIR, "threads", 8),
    ],
)
def test_a_message_that_kills_its_process_is_the_only_dead_letter(
    broker: RunningBroker,
    wire: Wire,
    producer: Producer,
    orders: str,
    tmp_path: Path,
    settings: dict[str, Any],
    kind: str,
    concurrency: int,
) -> None:
    at_once = {"kind": "table", "delay_seconds": [0]}
    group = name("payments")
    Admin(broker.client()).create_consumer_group(group, max_reconsume_times=2, retry_policy=at_once, **settings)
    for number, body in enumerate(MESSAGES):
        producer.send(orders, body, sharding_key=f"customer {number}")
    done = tmp_path / "done"
    done.touch()
    program = [sys.executable, "-m", "tests.client.mortal", kind, str(concurrency), broker.url, group, orders]
    begin = partial(
        subprocess.Popen[bytes],
        [*program, str(done), "1" if settings == ORDERED else ""],
        env={**os.environ, "API_KEY": API_KEY},
    )
    lives = [begin()]

    def dead_letters() -> list[Document]:
        if lives[-1].poll() is not None:
            lives.append(begin())
        found: list[Document] = wire.get(f"/v1/dead-letters/{group}").document["results"]
        # More than one is an answer, too: the wrong one.
        return found if len(found) > 1 or len(set(done.read_text().splitlines())) == len(MESSAGES) - 1 else []

    try:
        [dead] = eventually(dead_letters, within_seconds=60)
    finally:
        lives[-1].kill()
        lives[-1].wait()

    assert dead["message"]["body"] == DEADLY.decode()
    assert len(lives) == 4
