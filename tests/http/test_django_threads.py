"""Requests of the control plane and the console each run in one thread, which the next request uses again."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.signals import request_finished, request_started
from django.http import HttpRequest, HttpResponse
from django.test import override_settings
from django.urls import path

from mqbroker.web.django_handler import DjangoHandler
from store.process import runtime
from store.process.runtime import Runtime

# Only one of two requests that are begun together comes here before the other where they share a thread.
MEETING_SECONDS = 10.0
meeting = threading.Barrier(2)
seen: list[threading.Thread] = []


def note(**event: Any) -> None:
    seen.append(threading.current_thread())


def alone(request: HttpRequest) -> HttpResponse:
    note()
    return HttpResponse("alone")


def together(request: HttpRequest) -> HttpResponse:
    meeting.wait(MEETING_SECONDS)
    return alone(request)


urlpatterns = [path("alone", alone), path("together", together)]


@contextmanager
def noted() -> Iterator[list[threading.Thread]]:
    """The threads in which requests are begun, served and finished."""
    seen.clear()
    urls = override_settings(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"])
    # A request of Django's is the control's.
    with urls, runtime.installed(Runtime()):
        request_started.connect(note)
        request_finished.connect(note)
        try:
            yield seen
        finally:
            request_started.disconnect(note)
            request_finished.disconnect(note)


async def status(handler: Any, path: str) -> int:
    """The status of the answer to a GET."""
    events = asyncio.Queue[dict[str, Any]]()
    events.put_nowait({"type": "http.request", "body": b""})
    sent: list[dict[str, Any]] = []

    async def send(event: dict[str, Any]) -> None:
        sent.append(event)

    scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b"", "client": ("::1", 1)}
    await handler(scope, events.get, send)
    return int(sent[0]["status"])


async def test_requests_one_after_the_other_are_served_in_one_thread() -> None:
    handler = DjangoHandler()
    with noted() as threads:
        assert [await status(handler, "/alone") for _ in range(3)] == [200] * 3

    assert len(threads) == 9
    assert len(set(threads)) == 1


async def test_requests_at_once_have_a_thread_each() -> None:
    handler = DjangoHandler()
    with noted() as threads:
        assert await asyncio.gather(*(status(handler, "/together") for _ in range(2))) == [200] * 2

    assert len(set(threads)) == 2
