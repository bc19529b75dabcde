"""NATS, by JetStream: a message is confirmed once its stream has it, and repetitions within its window are one."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any

import nats
from nats.aio.client import Client
from nats.errors import BadSubjectError, Error, MaxPayloadError
from nats.js.errors import BadRequestError

from mqbroker_client.messages import StoredMessage
from mqbroker_client.relay.headers import CloudEvents, headers
from mqbroker_client.relay.names import Pattern
from mqbroker_client.relay.targets import TargetAway, TargetRefused

CONFIRM_SECONDS = 5.0
CONNECT_SECONDS = 5.0


class Nats:
    """A subject of a stream, which exists; the subject is a pattern of the message's fields."""

    def __init__(self, url: str, subject: str, *, cloudevents: CloudEvents | None = None) -> None:
        self._servers = [one.strip() for one in url.split(",")]
        self._subject = Pattern(subject)
        self._event = cloudevents
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="NATS", daemon=True)
        self._thread.start()
        self._client: Client | None = None
        self._connecting = threading.Lock()

    def publish(self, message: StoredMessage) -> None:
        subject = self._subject.of(message)
        # Of JetStream: by it a repetition is known.
        found = {"Nats-Msg-Id": str(message.message_id), **headers(message, self._event, "ce-")}
        try:
            stream = self._connected().jetstream()
            self._run(stream.publish(subject, message.body, timeout=CONFIRM_SECONDS, headers=found))
        except (MaxPayloadError, BadSubjectError, BadRequestError) as problem:
            raise TargetRefused(f"NATS refused it: {problem}") from problem
        except (Error, OSError, TimeoutError, CancelledError) as problem:
            raise TargetAway(f"{type(problem).__name__}: {problem}") from problem

    def close(self) -> None:
        if self._client is not None:
            self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _connected(self) -> Client:
        """The client, which connects again by itself for ever once it was connected."""
        with self._connecting:
            if self._client is None:
                # A first connection would be tried for ever, too.
                connecting = nats.connect(self._servers, max_reconnect_attempts=-1, error_cb=_say_nothing)
                self._client = self._run(asyncio.wait_for(connecting, CONNECT_SECONDS))
            return self._client

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _say_nothing(_: Exception) -> None:
    """What is away is said by the message that is not published."""
