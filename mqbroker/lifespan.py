"""What a web process starts before its first request and ends after its last."""

from mqbroker.api.lean import Receive, Send
from store import database, groupcommit, wakeups


async def run(receive: Receive, send: Send) -> None:
    """Answers the server's lifespan events."""
    while True:
        event = await receive()
        if event["type"] == "lifespan.startup":
            wakeups.listen()
            await send({"type": "lifespan.startup.complete"})
        elif event["type"] == "lifespan.shutdown":
            await groupcommit.writer.close()
            await wakeups.wakeups.close()
            await database.reads.close()
            await send({"type": "lifespan.shutdown.complete"})
            return
