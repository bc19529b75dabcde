"""A change holds from its answer on, also when the processes have just lost the connections that they hear of it by."""

import os
import signal
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import psutil
import psycopg
import pytest

from mqbroker.embedded.servers import postgres
from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.control.operators import Operator

LISTENERS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'mqbroker-listener'"
END_LISTENERS = f"SELECT pg_terminate_backend(pid) FROM ({LISTENERS}) AS listener"
# At one process, then at the other, and again.
CHANGES = 4
SENDS_AFTERWARDS = 20
# Between two sends of a holder, which would take all of a core.
PACE_SECONDS = 0.005


@pytest.fixture(scope="module")
def broker(mortal_broker: RunningBroker) -> RunningBroker:
    """Two web processes on a PostgreSQL that may be restarted."""
    return mortal_broker


@pytest.fixture
def topic(broker: RunningBroker) -> str:
    """A topic that exists."""
    name = characters.name("orders")
    assert Operator(broker.url, API_KEY).put(f"/v1/topics/{name}").status == 201
    return name


class Holder:
    """A caller with a key of its own, who sends at one process every PACE_SECONDS; statuses by the time of the call."""

    def __init__(self, changer: Operator, url: str, topic: str) -> None:
        self.name = characters.name("holder")
        made = changer.make("/v1/api-keys", name=self.name, scopes=["produce:*"])
        self.statuses: list[tuple[float, int]] = []
        self._wire = Operator(url, made.document["key"])
        self._topic = topic
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> Self:
        self._thread.start()
        self.is_served()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self._thread.join()

    def is_served(self) -> None:
        """Returns when a send is answered that begins now."""
        began = time.monotonic()
        eventually(lambda: 201 in self.since(began))

    def since(self, moment: float) -> list[int]:
        """The statuses of the sends that began after that."""
        return [status for began, status in self.statuses if began > moment]

    def _send(self) -> None:
        while not self._ends.wait(PACE_SECONDS):
            began = time.monotonic()
            self.statuses.append((began, self._wire.make("/v1/messages", topic=self._topic, body="order").status))


def revoked(holder: Holder, changer: Operator) -> float:
    """When the end of the holder's key was answered."""

    def is_done() -> bool:
        status = changer.delete(f"/v1/api-keys/{holder.name}").status
        assert status in (204, 503)
        return status != 503

    eventually(is_done, within_seconds=60)
    return time.monotonic()


def statuses_after_the_end_of_a_key(
    broker: RunningBroker, topic: str, at: int, disturb: Callable[[], None]
) -> set[int]:
    """Of sends at the other process that begin when the change has been answered, right after the disturbance."""
    changer = Operator(broker.urls[at], API_KEY)
    with Holder(changer, broker.urls[1 - at], topic) as holder:
        disturb()
        answered_at = revoked(holder, changer)
        eventually(lambda: len(holder.since(answered_at)) >= SENDS_AFTERWARDS)
    return set(holder.since(answered_at))


def test_the_end_of_a_key_holds_after_the_sessions_of_the_listeners_were_ended(
    server: postgres.Server, broker: RunningBroker, topic: str
) -> None:
    def end_listeners() -> None:
        with psycopg.connect(server.url, autocommit=True) as session:
            assert len(session.execute(END_LISTENERS.encode()).fetchall()) >= len(broker.webs)

    for change in range(CHANGES):
        eventually(lambda: listeners(server) >= len(broker.webs))
        found = statuses_after_the_end_of_a_key(broker, topic, change % 2, end_listeners)
        assert found == {401}, change


def test_the_end_of_a_key_holds_after_a_restart_of_postgresql(
    server: postgres.Server, broker: RunningBroker, topic: str
) -> None:
    def restart() -> None:
        server.stop()
        server.start()

    for change in range(2):
        assert statuses_after_the_end_of_a_key(broker, topic, change, restart) == {401}, change


def test_the_end_of_a_key_holds_after_postgresql_was_frozen(
    server: postgres.Server, broker: RunningBroker, topic: str
) -> None:
    """Each process has heard nothing of the others for longer than they count as there."""
    changer = Operator(broker.url, API_KEY)
    pids = [server.pid, *(child.pid for child in psutil.Process(server.pid).children())]

    def freeze() -> None:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            for _ in range(2):
                # After 4 s each.
                assert changer.get("/v1/topics").status == 503
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    assert statuses_after_the_end_of_a_key(broker, topic, 0, freeze) == {401}


def listeners(server: postgres.Server) -> int:
    """How many sessions listen."""
    with psycopg.connect(server.url, autocommit=True) as session:
        return len(session.execute(LISTENERS.encode()).fetchall())
