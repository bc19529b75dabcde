"""What a web process starts before its first request and ends after its last."""

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
            wakeups.listen()
            fallback.start()
            await send({"type": "lifespan.startup.complete"})
        elif event["type"] == "lifespan.shutdown":
            await fallback.close()
            await background.close()
            await send({"type": "lifespan.shutdown.complete"})
            return
