"""Functions that differ between threads and tasks. `mqbroker_client.aio.tasks` has the same names for tasks."""

import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from mqbroker_client.core.calls import Call
from mqbroker_client.core.connection import Broker

Given = ParamSpec("Given")
Found = TypeVar("Found")


def blocking(run: Callable[Given, Found], *given: Given.args, **more: Given.kwargs) -> Found:
    """Calls a function that may block, in this thread, and returns its result."""
    return run(*given, **more)


def send_later(broker: Broker, call: Call[Any]) -> None:
    """Sends a call in the background; a failure is only logged and counted."""
    broker.do_later(call)


def apart(broker: Broker) -> Broker:
    """A broker with its own connection, for a long poll that a stop can end without ending other requests."""
    return broker.apart()


def pause(stopping: threading.Event, seconds: float) -> None:
    """Pauses for this time, or until a stop."""
    stopping.wait(seconds)
