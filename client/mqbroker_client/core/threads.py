"""What a thread does otherwise than a task. `mqbroker_client.aio.tasks` has the same names, for tasks."""

import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from mqbroker_client.core.calls import Call
from mqbroker_client.core.connection import Broker

Given = ParamSpec("Given")
Found = TypeVar("Found")


def blocking(run: Callable[Given, Found], *given: Given.args, **more: Given.kwargs) -> Found:
    """What a function returns that may block: it runs here."""
    return run(*given, **more)


def send_later(broker: Broker, call: Call[Any]) -> None:
    """Send a call in the background, where a failure is only logged and counted."""
    broker.do_later(call)


def apart(broker: Broker) -> Broker:
    """The broker for a long poll that a stop ends: over a connection of its own, so that nothing else ends."""
    return broker.apart()


def pause(stopping: threading.Event, seconds: float) -> None:
    """Pause until a stop, at the longest."""
    stopping.wait(seconds)
