"""The program's own functions that do the work of a message."""

import inspect
from collections.abc import Callable

from mqbroker_client.messages import Delivery

#: Does the work of one delivery. Its return acks, its exception nacks.
Handler = Callable[[Delivery], object]


def require_run(result: object, way_out: str) -> None:
    """Raises TypeError where a handler returned what has not run: a coroutine, or a generator.

    Taken for done, its message would be acked, or its row of the inbox kept, without the work.
    """
    if inspect.iscoroutine(result):
        result.close()  # it warns otherwise that it was never awaited
    elif not (inspect.isgenerator(result) or inspect.isasyncgen(result)):
        return
    raise TypeError(f"the handler returned a {type(result).__name__} and nothing of it has run: {way_out}")
