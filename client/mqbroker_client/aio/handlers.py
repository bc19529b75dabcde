"""The program's own functions that do the work of a message, for tasks."""

from collections.abc import Awaitable, Callable

from mqbroker_client.core.messages import Delivery

#: Does the work of one delivery: a coroutine function, or a plain one, which runs in a thread because it may block.
AsyncHandler = Callable[[Delivery], Awaitable[object] | object]
