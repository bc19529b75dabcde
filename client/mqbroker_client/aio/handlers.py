"""The program's own functions that process messages, for tasks."""

from collections.abc import Awaitable, Callable

from mqbroker_client.core.messages import Delivery

#: Handles one delivery: a coroutine function, or a plain function, which runs in a thread because it may block.
AsyncHandler = Callable[[Delivery], Awaitable[object] | object]
