"""A Broker that was used before a fork serves every process, and no process reads another one's answers."""

import json
import subprocess
import sys

from tests.broker.running import API_KEY, RunningBroker

WORKERS, SENDS = 4, 60


def test_processes_that_share_a_broker_get_their_own_answers(broker: RunningBroker, orders: str) -> None:
    """Those of a pool, and those that are forked while threads of their parent have requests under way."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.client.preloaded", broker.url, orders, str(WORKERS), str(SENDS)],
        env=broker.environment | {"API_KEY": API_KEY},
        capture_output=True,
        text=True,
        timeout=120,
    )

    sent = 2 * WORKERS + (WORKERS + 1) * SENDS
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"sent": sent, "own": sent, "codes": [0]}, done.stderr
