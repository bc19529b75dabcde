"""How long `/healthz` takes while something else goes on."""

import contextlib
import http.client
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from tests.broker.burdens import IS_STRICT
from tests.broker.running import RunningBroker

EVERY_SECONDS = 0.05
# What is promised of a quiet machine.
MOST_SECONDS = 0.1


@contextlib.contextmanager
def asked(broker: RunningBroker, seconds: list[float]) -> Iterator[None]:
    """Adds the seconds of each answer of `/healthz` until the end of the block."""
    over = threading.Event()

    def ask() -> None:
        with contextlib.closing(http.client.HTTPConnection(urlsplit(broker.url).netloc, timeout=60)) as connection:
            while not over.wait(EVERY_SECONDS):
                began = time.monotonic()
                connection.request("GET", "/healthz")
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 200
                seconds.append(time.monotonic() - began)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def hold(seconds: list[float]) -> None:
    """Holds, on a quiet machine, that each came in time."""
    print(f"/healthz within {max(seconds, default=0.0) * 1000:.0f} ms")
    assert not IS_STRICT or max(seconds) <= MOST_SECONDS
