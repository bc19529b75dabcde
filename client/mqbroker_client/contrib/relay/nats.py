"""NATS JetStream as a target: a message is confirmed when its stream has stored it; repetitions within the stream's
window are dropped.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Coroutine, Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

import nats
from nats import errors
from nats.aio.client import Client
from nats.js.errors import NoStreamResponseError, NotFoundError, ServiceUnavailableError

from mqbroker_client.contrib.relay.headers import CloudEvents, headers
from mqbroker_client.contrib.relay.names import Pattern
from mqbroker_client.contrib.relay.reserved import TABLES
from mqbroker_client.contrib.relay.targets import TargetAway, TargetRefused
from mqbroker_client.core.messages import StoredMessage

CONFIRM_SECONDS = 5.0
CONNECT_SECONDS = 5.0
#: The limit of each call of the client, which itself waits without end for a server that takes no bytes.
CALL_SECONDS = 10.0
#: The server closes the connection, for all threads, after a control line of more than 4,096 bytes, or 1,024 in older
#: versions.
MAX_SUBJECT_BYTES = 900
#: The command that makes a stream for a subject.
MAKES = "`nats stream add NAME --subjects '{}' --defaults` makes one"
#: Prefixes of the server's own subjects, such as `$JS.API.STREAM.DELETE.orders`, and of reply subjects.
KEPT = ("$", "_")
#: Errors that mean that the target is away: a broken connection, or a server that cannot accept now, for example
#: because a stream is full.
AWAY = (
    errors.TimeoutError,
    errors.NoServersError,
    errors.ConnectionClosedError,
    errors.ConnectionDrainingError,
    errors.ConnectionReconnectingError,
    errors.OutboundBufferLimitError,
    errors.StaleConnectionError,
    ServiceUnavailableError,
    OSError,
    TimeoutError,
    CancelledError,
)


class Nats:
    """A subject of an existing stream as a target; the subject is a pattern of the message's fields."""

    def __init__(self, url: str, subject: str, *, cloudevents: CloudEvents | None = None) -> None:
        self._servers = [one.strip() for one in url.split(",")]
        self._subject = Pattern(subject, kept=KEPT)
        self._event = cloudevents
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="NATS", daemon=True)
        self._thread.start()
        self._client: Client | None = None
        self._connecting = threading.Lock()
        # Messages of the server that are no answers; only they tell that a subject is forbidden.
        self._said: deque[str] = deque(maxlen=100)

    def publish(self, message: StoredMessage) -> None:
        subject = _checked(self._subject.of(message))
        # JetStream recognises a repetition by the message id.
        found = {**headers(message, TABLES["nats"], self._event, "ce-"), "Nats-Msg-Id": str(message.message_id)}
        client = self._connected()
        _require_fit(client, found, message.body)
        try:
            self._run(client.jetstream().publish(subject, message.body, timeout=CONFIRM_SECONDS, headers=found))
        except NoStreamResponseError as problem:
            raise self._without_stream(client, subject) from problem
        except AWAY as problem:
            if words := self._forbidden(subject):
                raise TargetRefused(f"NATS refused it: {words}") from problem
            raise TargetAway(f"{type(problem).__name__}: {problem}") from problem
        except errors.Error as problem:
            raise TargetRefused(f"NATS refused it: {problem}") from problem

    def close(self) -> None:
        if self._client is not None:
            with suppress(TimeoutError):
                self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _connected(self) -> Client:
        """The client, connected. After its first connection it reconnects by itself without end. Raises TargetAway."""
        with self._connecting:
            # After a protocol error the client stays closed.
            if self._client is None or self._client.is_closed:
                # Without the time limit, even the first connection would be tried without end.
                connecting = nats.connect(self._servers, max_reconnect_attempts=-1, error_cb=self._note)
                try:
                    self._client = self._run(asyncio.wait_for(connecting, CONNECT_SECONDS))
                except Exception as problem:  # the error is not about this message
                    raise TargetAway(f"{type(problem).__name__}: {problem}") from problem
            return self._client

    def _without_stream(self, client: Client, subject: str) -> Exception:
        """The error when no stream confirms: JetStream is away, or no stream has this subject."""
        try:
            self._run(client.jetstream().find_stream_name_by_subject(subject))
        except NotFoundError:
            return TargetRefused(f"NATS refused it: no stream has the subject {subject!r}; {MAKES.format(subject)}")
        except (*AWAY, errors.Error) as problem:
            return TargetAway(f"JetStream does not answer: {problem}")
        return TargetAway(f"the stream of the subject {subject!r} does not answer")

    def _forbidden(self, subject: str) -> str | None:
        """The server's message if it forbids the relay to publish to this subject; else None."""
        ends = f'publish to "{subject}"'.casefold()
        words = next((said for said in self._said.copy() if ends in said.casefold()), None)
        if words is not None:
            # Reported once per message, because the subject may be allowed from now on.
            with suppress(ValueError):
                self._said.remove(words)
        return words

    async def _note(self, problem: Exception) -> None:
        # Other errors are reported by the message that cannot be published.
        if "permissions violation" in str(problem).casefold():
            self._said.append(str(problem))

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, CALL_SECONDS), self._loop).result()


def _checked(subject: str) -> str:
    """Raises TargetRefused for an invalid subject: the server accepts some, but no reader would get the message.

    The client itself refuses blanks, which could start another command.
    """
    if size := max(len(subject.encode()) - MAX_SUBJECT_BYTES, 0):
        raise TargetRefused(f"NATS refused it: the subject is {size} bytes too long, the limit is {MAX_SUBJECT_BYTES}")
    tokens = subject.split(".")
    if not all(tokens) or any(sign in subject for sign in "*>") or subject != "".join(subject.split()):
        raise TargetRefused(
            f"NATS refused it: {subject!r} is no subject to publish to, with an empty token, a blank or a wildcard"
        )
    return subject


def _require_fit(client: Client, found: Mapping[str, str], body: bytes) -> None:
    """Raises TargetRefused for a message above the server's limits, because the server would close the connection for
    all.
    """
    if wrong := [name for name in found if name != name.strip()]:
        raise TargetRefused(f"NATS refused it: the header {wrong[0]!r} has blanks around its name")
    lines = sum(len(name.encode()) + len(value.encode()) + 4 for name, value in found.items())
    size = len("NATS/1.0\r\n\r\n") + lines + len(body)
    if size > client.max_payload:
        raise TargetRefused(
            f"NATS refused it: maximum payload exceeded, {size} bytes with the headers, "
            f"the limit is {client.max_payload}"
        )
