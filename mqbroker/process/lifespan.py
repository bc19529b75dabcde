"""What a process that serves callers starts before its first request and ends after its last."""

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
    """The process is ready to serve within the block.

    Raises Unfit for a database that cannot keep what it acknowledges. One that is known was found fit for a process
    whose place this one takes: the look at it takes most of the time for which its callers would wait.
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
    """Raises this process's limit of open files, often 1024, to the permitted maximum: each long poll holds one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # some systems report a maximum that they do not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


# From <malloc.h>.
M_MMAP_THRESHOLD = -3
LARGE_BYTES = 128 * 1024


def give_large_memory_back() -> None:
    """Has the C library map large blocks one by one, so that their memory returns to the system when they are freed.

    glibc raises its threshold with the first large block that is freed, up to 32 MiB: from then on message bodies lie
    on the heap, between small objects that keep it from shrinking. Other C libraries have no such call.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
