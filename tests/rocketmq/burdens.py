"""What some load takes of the process for RocketMQ's clients: its memory, and the time of another key's sends.

As `tests.broker.burdens` for web processes. The sends come from a process of their own.
"""

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import grpc

from mqbroker.embedded.commands import ROOT
from tests.broker import characters
from tests.broker.burdens import (
    AFTER_SECONDS,
    EVERY_SECONDS,
    IS_STRICT,
    QUIET_SECONDS,
    Burden,
    Sends,
    resident_bytes,
    watching,
)
from tests.broker.running import RunningBroker
from tests.rocketmq.conftest import Gateway
from tests.rocketmq.stub import Client, message
from tests.rocketmq.test_access_of_clients import made_key

OK = 20000


def burden_of(gateway: Gateway, broker: RunningBroker, load: Callable[[], object]) -> Burden:
    """Runs the load, and measures what it takes of the process."""
    pid = gateway.child.pid
    with _sending(gateway, broker) as sender, watching([pid]) as worst:
        time.sleep(QUIET_SECONDS)
        before, began = resident_bytes(pid), time.monotonic()
        load()
        ended = time.monotonic()
        if IS_STRICT:
            time.sleep(AFTER_SECONDS)
        after = resident_bytes(pid)
        sent, _ = sender.communicate()
    lines = [json.loads(line) for line in sent.splitlines()]
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


@contextlib.contextmanager
def _sending(gateway: Gateway, broker: RunningBroker) -> Iterator["subprocess.Popen[str]"]:
    words = [
        sys.executable,
        "-m",
        __name__,
        gateway.address,
        made_key(broker, ["produce:*"])["key"],
        characters.name("beside"),
    ]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sender:
        try:
            assert sender.stdout is not None
            # It has sent once: its connection is open, its topic there.
            sender.stdout.readline()
            yield sender
        finally:
            if sender.stdin is not None and not sender.stdin.closed:
                sender.stdin.close()
            sender.wait()


def send_until_the_end(address: str, key: str, topic: str) -> None:
    """Sends each EVERY_SECONDS until standard input ends, then prints when each send was due, its time and its code."""
    over = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    sent: list[tuple[float, float, int]] = []
    with Client(address, key) as client:
        due = time.monotonic()
        while not over.wait(max(0.0, due - time.monotonic())):
            code = _send(client, topic)
            sent.append((due, time.monotonic() - due, code))
            if len(sent) == 1:
                print(flush=True)
            due += EVERY_SECONDS
    for send in sent:
        print(json.dumps(send))


def _send(client: Client, topic: str) -> int:
    try:
        return int(client.send(message(topic, b"beside")).status.code)
    except grpc.RpcError:
        return 0


if __name__ == "__main__":
    send_until_the_end(*sys.argv[1:])
