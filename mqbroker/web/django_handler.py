"""Django's handler: each request in one thread, from its first middleware to its last, and threads that are kept."""

import contextlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from store.process import runtime
from store.process.runtime import CONTROL

# As many as Django's pool has connections: more requests at once wait for each other there.
KEPT_THREADS = 4


class DjangoHandler(ASGIHandler):
    """Serves the control plane and the console.

    Django's own handler makes a thread for each request, and enters it for each middleware by itself: `GET /healthz`
    took 3.3 ms of CPU, and takes 0.9.
    """

    def __init__(self) -> None:
        self._idle: list[ThreadPoolExecutor] = []
        super().__init__()

    def load_middleware(self, is_async: bool = False) -> None:
        """Middleware and views are called in one thread: a view that is a coroutine is awaited in the event loop."""
        super().load_middleware(is_async=False)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        # What Django serves is the configuration, and what of the control's own cell it shows; what an id names is
        # looked for in its cell.
        with runtime.in_cell(CONTROL):
            async with self._thread():
                await super().__call__(scope, receive, send)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response)(request)

    @contextlib.asynccontextmanager
    async def _thread(self) -> AsyncIterator[None]:
        """A thread for one request."""
        thread = self._idle.pop() if self._idle else ThreadPoolExecutor(1, thread_name_prefix="django")
        is_left = False
        try:
            async with ThreadSensitiveContext(executor=thread):
                yield
            is_left = True
        finally:
            # Of a request that was broken off the thread may still be at work.
            if is_left and len(self._idle) < KEPT_THREADS:
                self._idle.append(thread)
            else:
                thread.shutdown(wait=False)
