"""Two brokers on one Redis: each has its own ticks, also beside the worker of the other."""

from pathlib import Path

import redis

from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.running import RunningBroker


def test_a_worker_leaves_another_brokers_ticks_alone(broker: RunningBroker, tmp_path: Path) -> None:
    port = free_port()
    redis_url = broker.environment["REDIS_URL"]
    # Its beat ticks, and it has no worker; the other broker's is there.
    other = RunningBroker(tmp_path, f"postgresql://them@127.0.0.1:{port}/theirs", redis_url)
    ticks = f"mqbroker.theirs@127.0.0.1:{port}"
    with redis.Redis.from_url(redis_url) as client:
        other.beat.start()
        try:
            eventually(lambda: client.llen(ticks) >= 5)
        finally:
            other.beat.stop()
            client.delete(ticks)
