"""A NATS server of the tests' own with JetStream, in a folder of its own, on loopback."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nats
from nats.errors import Error
from nats.js.api import DiscardPolicy
from nats.js.client import JetStreamContext

from mqbroker.embedded.processes.child import Child
from tests import packages
from tests.broker.polling import eventually
from tests.broker.ports import free_port


class Server:
    """A server that may be killed; its streams are files."""

    def __init__(self, program: str, folder: Path) -> None:
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        words = [program, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(folder / "streams")]
        self._child = Child("nats", words, {}, folder / "nats.log", folder, stop_seconds=10)

    def start(self) -> None:
        """Returns once it has JetStream."""
        self._child.start()
        eventually(self._answers)

    def kill(self) -> None:
        """As by `kill -9`."""
        self._child.kill()

    def stop(self) -> None:
        """Ends it."""
        self._child.stop()

    def last_lines(self) -> str:
        """The end of what the server has printed."""
        return self._child.last_lines()

    def make_stream(self, name: str, subject: str) -> None:
        """A stream whose window for repetitions is short: what comes twice is seen twice. Headers may delete in it."""

        async def make(stream: JetStreamContext) -> None:
            await stream.add_stream(name=name, subjects=[subject], duplicate_window=0.1, allow_rollup_hdrs=True)

        self._with(make)

    def fill(self, name: str, subject: str) -> None:
        """A stream of one message that is kept, whatever comes."""

        async def fill(stream: JetStreamContext) -> None:
            await stream.publish(subject, b"fills it")
            config = (await stream.stream_info(name)).config
            await stream.update_stream(config.evolve(max_msgs=1, discard=DiscardPolicy.NEW))

        self._with(fill)

    def empty(self, name: str) -> None:
        """Deletes the messages of a stream."""
        self._with(lambda stream: stream.purge_stream(name))

    def messages(self, name: str) -> list[Any]:
        """All messages of a stream, in their order."""

        async def read(stream: JetStreamContext) -> list[Any]:
            count = (await stream.stream_info(name)).state.messages
            subscription = await stream.subscribe(">", stream=name, ordered_consumer=True)
            return [await subscription.next_msg(timeout=120) for _ in range(count)]

        found: list[Any] = self._with(read)
        return found

    def _with(self, work: Callable[[JetStreamContext], Any]) -> Any:
        async def run() -> Any:
            client = await nats.connect(self.url, connect_timeout=2, allow_reconnect=False)
            try:
                return await work(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(run())

    def _answers(self) -> bool:
        assert self._child.is_running(), self._child.last_lines()
        try:
            self._with(lambda stream: stream.account_info())
        except (OSError, Error, TimeoutError):
            return False
        return True


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """Skips the test where the program is not on the path."""
    program = shutil.which("nats-server")
    if program is None:
        packages.skip_for_want_of("nats-server", "NATS")
    folder.mkdir()
    server = Server(program, folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
