"""A TCP proxy in front of the broker, which loses requests or answers on demand."""

import asyncio
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.broker.background import BackgroundLoop
from tests.broker.ports import free_port

CHUNK_BYTES = 65_536


class LossyProxy:
    """Passes everything on, until a test lets it lose requests or answers: the connection then ends."""

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target)
        self._port = free_port()
        self._loop = BackgroundLoop("lossy proxy")
        self._server: asyncio.Server | None = None
        self.loses_requests = False
        self.loses_answers = False
        # The number of answers whose next bytes are lost; later answers pass.
        self.answers_to_lose = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(self._target.hostname, self._target.port)
        try:
            requests = asyncio.create_task(self._pass_on(reader, there[1], of_broker=False))
            answers = asyncio.create_task(self._pass_on(there[0], writer, of_broker=True))
            await asyncio.wait([requests, answers], return_when=asyncio.FIRST_COMPLETED)
            for task in (requests, answers):
                task.cancel()
        finally:
            writer.close()
            there[1].close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, of_broker: bool) -> None:
        while data := await reader.read(CHUNK_BYTES):
            if self.loses_answers if of_broker else self.loses_requests:
                return
            if of_broker and self.answers_to_lose:
                self.answers_to_lose -= 1
                return
            writer.write(data)
            await writer.drain()

    def __enter__(self) -> Self:
        self._loop.run(self._open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run(self._close())
        self._loop.close()
