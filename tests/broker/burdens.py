"""What some load takes of a running broker: memory of its web processes, and the time of another key's sends.

`burden_of(broker, load)` runs the load in this thread. The sends come from a process of their own, one due each
EVERY_SECONDS and timed from then, so that a web process that stands still shows in each send that was due meanwhile.

`hold` compares that with what is promised. A test holds memory, and times that a loaded machine keeps too;
`MQ_BURDENS=1 ./mq test tests/http/test_floods.py -s`, on a quiet machine, prints each burden, waits for what a process
keeps, and holds the times that are promised.
"""

import contextlib
import http.client
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.processes import identity
from tests.broker import characters, forks
from tests.broker.forks import ForkedChild
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import RunningBroker

MEBIBYTE = 1024 * 1024
EVERY_SECONDS = 0.02
LOOK_SECONDS = 0.05
IS_STRICT = bool(os.environ.get("MQ_BURDENS"))
# Of sends without the load, whose p99 a strict run compares.
QUIET_SECONDS = 2.0 if IS_STRICT else 0.0
# Memory is at rest when it has not grown by REST_BYTES within REST_SECONDS, on a machine with a free core.
REST_SECONDS, REST_BYTES = 0.25, 1 * MEBIBYTE

# What a load may take of the memory of a web process.
WITHOUT_A_KEY_BYTES = 60 * MEBIBYTE
WITH_A_KEY_BYTES = 120 * MEBIBYTE
# What another key's sends may take meanwhile: of the p99 before on a quiet machine, and in seconds on any.
MOST_TIMES_P99 = 3.0
MOST_SECONDS = 2.0
AFTER_SECONDS = 30.0

# Resident bytes by the id of a web process.
Memory = dict[int, int]


@dataclass(frozen=True)
class Sends:
    """The sends of another key during one span: the seconds from the time each was due to its answer."""

    seconds: list[float]
    refused: int

    @property
    def p99(self) -> float:
        """In seconds."""
        return sorted(self.seconds)[len(self.seconds) * 99 // 100] if self.seconds else 0.0

    @property
    def longest(self) -> float:
        """In seconds."""
        return max(self.seconds, default=0.0)


@dataclass(frozen=True)
class Burden:
    """What a load took: memory before it, at the worst and after it, and the sends before it and meanwhile."""

    before: Memory
    worst: Memory
    after: Memory
    quiet: Sends
    meanwhile: Sends

    @property
    def grown_bytes(self) -> int:
        """How much the web process that grew most did at the worst."""
        return max(self.worst[pid] - size for pid, size in self.before.items())

    @property
    def kept_bytes(self) -> int:
        """How much of it a web process kept at the end."""
        return max(self.after[pid] - size for pid, size in self.before.items())

    def __str__(self) -> str:
        memory = ", ".join(
            f"{size / MEBIBYTE:.0f} -> {self.worst[pid] / MEBIBYTE:.0f} -> {self.after[pid] / MEBIBYTE:.0f} MiB"
            for pid, size in self.before.items()
        )
        quiet, busy = self.quiet, self.meanwhile
        sends = f"p99 {quiet.p99 * 1000:.1f} -> {busy.p99 * 1000:.1f} ms, longest {busy.longest * 1000:.0f} ms"
        return f"memory {memory}; sends of another key {sends}, {len(busy.seconds)} answered, {busy.refused} refused"


def hold(burden: Burden, most_bytes: int) -> None:
    """Holds that a load took no more memory than this, and not the time of the other key's sends."""
    print(burden)
    assert burden.grown_bytes < most_bytes, burden
    assert burden.meanwhile.refused == 0, burden
    if IS_STRICT:
        assert burden.meanwhile.p99 <= MOST_TIMES_P99 * burden.quiet.p99, burden
    else:
        assert burden.meanwhile.p99 < at_this_load(MOST_SECONDS), burden


def burden_of(broker: RunningBroker, load: Callable[[], object], web: int = 0) -> Burden:
    """Runs the load, and measures it against one web process, which the sends go to."""
    with sending(broker, __name__, broker.urls[web]) as sender, watching(memory_of(broker)) as worst:
        time.sleep(QUIET_SECONDS)
        before, began = memory_of(broker), time.monotonic()
        load()
        ended = time.monotonic()
        if IS_STRICT:
            time.sleep(AFTER_SECONDS)
        after = memory_of(broker)
        lines = sends_of(sender)
    return Burden(
        before,
        {pid: max(size, worst.get(pid, 0)) for pid, size in before.items()},
        {pid: after.get(pid, 0) for pid in before},
        _sends(lines, began - QUIET_SECONDS, began),
        _sends(lines, began, ended),
    )


def memory_of(broker: RunningBroker) -> Memory:
    """The resident bytes of each web process now."""
    pids = [pid for web in broker.webs for pid in identity.session_members(web.pid)]
    return {pid: resident_bytes(pid) for pid in pids}


def wait_for_rest(broker: RunningBroker) -> None:
    """Returns when a load that is under way has got all the memory that it gets: that of no web process grows."""
    before: Memory = {}
    now = memory_of(broker)
    while any(size > before.get(pid, 0) + REST_BYTES for pid, size in now.items()):
        time.sleep(at_this_load(REST_SECONDS))
        before, now = now, memory_of(broker)


def resident_bytes(pid: int) -> int:
    """Of one process, without pages of files, which a fork maps again as it touches them; 0 once it has ended."""
    try:
        resident, of_files = map(int, Path(f"/proc/{pid}/statm").read_text().split()[1:3])
        return (resident - of_files) * os.sysconf("SC_PAGE_SIZE")
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _sends(lines: list[tuple[float, float, int]], since: float, until: float) -> Sends:
    within = [(seconds, status) for due, seconds, status in lines if since <= due < until]
    return Sends([seconds for seconds, status in within if status == 201], sum(status != 201 for _, status in within))


@contextlib.contextmanager
def watching(pids: Iterable[int]) -> Iterator[Memory]:
    """The most resident bytes that each process has had, until the end of the block."""
    worst: Memory = {}
    over = threading.Event()
    pids = list(pids)

    def watch() -> None:
        while not over.wait(LOOK_SECONDS):
            for pid in pids:
                worst[pid] = max(worst.get(pid, 0), resident_bytes(pid))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield worst
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def sending(broker: RunningBroker, module: str, address: str) -> Iterator[ForkedChild]:
    """The program of a module, with an address, a key and a topic of its own. It has sent once when the block begins:
    its connection is open, its topic there.
    """
    name = characters.name("beside")
    words = [sys.executable, "-m", module, address, characters.key_of(broker, "produce:*"), name]
    environment = {**os.environ, **forks.PATH}
    sender = ForkedChild(name, words, environment, broker.folder / f"{name}.log", ROOT, stop_seconds=120)
    sender.start()
    try:
        eventually(lambda: sender.log.read_text())
        yield sender
    finally:
        sender.stop()


def sends_of(sender: ForkedChild) -> list[tuple[float, float, int]]:
    """Ends the program; what it printed of each of its sends."""
    sender.stop()
    return [json.loads(line) for line in sender.log.read_text().splitlines() if line]


def send_until_the_end(send: Callable[[], int]) -> None:
    """Sends each EVERY_SECONDS until SIGTERM, then prints each send.

    A line has the time at which it was due, the seconds to its answer, and its status; 0 where there was none.
    """
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: over.set())
    sent: list[tuple[float, float, int]] = []
    due = time.monotonic()
    while not over.wait(max(0.0, due - time.monotonic())):
        status = send()
        sent.append((due, time.monotonic() - due, status))
        if len(sent) == 1:
            print(flush=True)
        due += EVERY_SECONDS
    for each in sent:
        print(json.dumps(each))


def send(connection: http.client.HTTPConnection, key: str, topic: str) -> int:
    """The status of a send; 0 without an answer."""
    body = json.dumps({"topic": topic, "body": "beside"}).encode()
    try:
        connection.request("POST", "/v1/messages", body, {"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        return 0
    return answer.status


if __name__ == "__main__":
    url, *key_and_topic = sys.argv[1:]
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
    send_until_the_end(lambda: send(connection, *key_and_topic))
