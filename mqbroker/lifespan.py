"""What a web process starts before its first request and ends after its last."""

import contextlib
import resource

from mqbroker import background
from mqbroker.api.lean import Receive, Send
from store import wakeups


async def run(receive: Receive, send: Send) -> None:
    """Answers the server's lifespan events."""
    fallback = background.Fallback()
    while True:
        event = await receive()
        if event["type"] == "lifespan.startup":
            background.spare_collector()
            allow_many_connections()
            wakeups.listen()
            fallback.start()
            await send({"type": "lifespan.startup.complete"})
        elif event["type"] == "lifespan.shutdown":
            await fallback.close()
            await background.close()
            await send({"type": "lifespan.shutdown.complete"})
            return


def allow_many_connections() -> None:
    """Raises this process's limit of open files, often 1024, as far as it may: each waiting consumer holds one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # some systems call unlimited what they do not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
