"""What some load takes of the process for RocketMQ's clients: its memory, and the time of another key's sends.

As `tests.broker.burdens` for web processes. The sends come from a process of their own.
"""

import sys
import time
from collections.abc import Callable

import grpc

from tests.broker.burdens import (
    AFTER_SECONDS,
    IS_STRICT,
    QUIET_SECONDS,
    Burden,
    Sends,
    resident_bytes,
    send_until_the_end,
    sending,
    sends_of,
    watching,
)
from tests.broker.running import RunningBroker
from tests.rocketmq.conftest import Gateway
from tests.rocketmq.stub import Client, message

OK = 20000


def burden_of(gateway: Gateway, broker: RunningBroker, load: Callable[[], object]) -> Burden:
    """Runs the load, and measures what it takes of the process."""
    pid = gateway.child.pid
    with sending(broker, __name__, gateway.address) as sender, watching([pid]) as worst:
        time.sleep(QUIET_SECONDS)
        before, began = resident_bytes(pid), time.monotonic()
        load()
        ended = time.monotonic()
        if IS_STRICT:
            time.sleep(AFTER_SECONDS)
        after = resident_bytes(pid)
        lines = sends_of(sender)
    return Burden(
        {pid: before},
        {pid: max(before, worst.get(pid, 0))},
        {pid: after},
        _within(lines, began - QUIET_SECONDS, began),
        _within(lines, began, ended),
    )


def _within(lines: list[tuple[float, float, int]], since: float, until: float) -> Sends:
    found = [(seconds, code) for due, seconds, code in lines if since <= due < until]
    return Sends([seconds for seconds, code in found if code == OK], sum(code != OK for _, code in found))


def _send(client: Client, topic: str) -> int:
    try:
        return int(client.send(message(topic, b"beside")).status.code)
    except grpc.RpcError:
        return 0


if __name__ == "__main__":
    address, key, topic = sys.argv[1:]
    with Client(address, key) as client:
        send_until_the_end(lambda: _send(client, topic))
