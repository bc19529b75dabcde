"""Starts what a serving process needs before its first request, and ends it after the last request."""

import asyncio
import contextlib
import ctypes
import resource
from collections.abc import AsyncIterator

from console.cells import registry
from mqbroker.process import background, sealed_secrets
from store.db import guards
from store.notices import notifier


@contextlib.asynccontextmanager
async def running(*, is_known: bool) -> AsyncIterator[None]:
    """Within the block the process is ready to serve.

    Raises Unfit for a database that cannot keep what it acknowledges. With `is_known` the database is not examined
    again, because the replaced process has found it fit: the examination takes most of the time for which callers would
    have to wait.
    """
    if not is_known:
        await asyncio.to_thread(guards.require_fit, "mqbroker-start")
        await asyncio.to_thread(sealed_secrets.require_readable)
        await asyncio.to_thread(registry.heal)
    fallback = background.Fallback()
    background.start()
    background.spare_collector()
    give_large_memory_back()
    allow_many_connections()
    notifier.start()
    fallback.start()
    try:
        yield
    finally:
        await fallback.close()
        await background.close()


def allow_many_connections() -> None:
    """Raises this process's limit of open files, often 1024, to the permitted maximum: each long poll needs one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # some systems report a maximum that they do not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


# From <malloc.h>.
M_MMAP_THRESHOLD = -3
LARGE_BYTES = 128 * 1024


def give_large_memory_back() -> None:
    """Makes the C library allocate large blocks separately, so that freed memory returns to the system.

    By default glibc raises its threshold for separate blocks with each large block that is freed, up to 32 MiB. Then
    message bodies lie on the heap among small objects, and the heap cannot shrink. Other C libraries lack this call.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
