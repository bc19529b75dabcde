"""A producer's own server, where the broker asks about half messages: real HTTP, in a thread, with scripted answers."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.broker.background import BackgroundLoop
from tests.broker.ports import free_port
from tests.broker.wire import Document


@dataclass(frozen=True)
class Asked:
    """One check-back as it came over the wire."""

    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Document:
        found: Document = json.loads(self.body)
        return found

    @property
    def transactions(self) -> list[Document]:
        found: list[Document] = self.document["transactions"]
        return found


Reply = Callable[[Asked], Awaitable[web.StreamResponse]]


@dataclass
class ProducerEndpoint:
    """Listens on loopback within `with`. Each check gets the next reply of the script, the last one for ever."""

    port: int = field(default_factory=free_port)
    asked: list[Asked] = field(default_factory=list)
    _script: list[Reply] = field(default_factory=list)
    _loop: BackgroundLoop = field(default_factory=lambda: BackgroundLoop("producer endpoint"))
    _runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/checks"

    def replies(self, *script: Reply) -> None:
        """What it answers from now on."""
        self._script[:] = script

    def about(self, transaction_id: object) -> list[Document]:
        """What was asked about one transaction, the first first."""
        entries = [entry for asked in list(self.asked) for entry in asked.transactions]
        return [entry for entry in entries if entry["transaction_id"] == str(transaction_id)]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(dict(request.headers), await request.read())
        self.asked.append(asked)
        reply = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        return await reply(asked)

    def open(self) -> None:
        """Begins to listen."""
        self._loop.run(self._open())

    async def _open(self) -> None:
        app = web.Application(client_max_size=32 * 1024 * 1024)
        app.router.add_post("/checks", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    def close(self) -> None:
        """Stops to listen; `open` brings it back at the same place."""
        if self._runner is not None:
            self._loop.run(self._runner.cleanup())
            self._runner = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self._loop.close()


def states(state: str | Callable[[Document], str]) -> Reply:
    """Answers for every transaction that is asked about: one state, or the one that a function finds."""

    async def reply(asked: Asked) -> web.StreamResponse:
        found = {
            entry["transaction_id"]: state if isinstance(state, str) else state(entry) for entry in asked.transactions
        }
        results = [{"transaction_id": transaction_id, "state": found[transaction_id]} for transaction_id in found]
        return web.json_response({"results": results})

    return reply


def says(status: int, document: Any = None, **headers: str) -> Reply:
    """Answers with a status, and a JSON document if one is given."""

    async def reply(asked: Asked) -> web.StreamResponse:
        if document is None:
            return web.Response(status=status, headers=headers)
        return web.json_response(document, status=status, headers=headers)

    return reply


def silence(seconds: float) -> Reply:
    """Answers nothing for so long."""

    async def reply(asked: Asked) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return web.Response(status=200)

    return reply
