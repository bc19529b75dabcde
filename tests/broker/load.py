"""Many callers at once: requests over many connections to several web processes, in one event loop."""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp

from tests.broker.running import API_KEY
from tests.broker.wire import Document

Thing = TypeVar("Thing")
Result = TypeVar("Result")
# Each process of a broker may have kept a connection that ends with it.
ASKED_AGAIN = 3


class Crowd:
    """Callers of a broker; each request goes to the next of its web processes. Use within `async with`."""

    def __init__(self, urls: Sequence[str], connections: int = 64) -> None:
        self._turns = itertools.cycle(urls)
        self._connections = connections

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {API_KEY}"},
            connector=aiohttp.TCPConnector(limit=self._connections),
            timeout=aiohttp.ClientTimeout(total=120),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def post(self, path: str, document: Mapping[str, Any]) -> tuple[int, Document]:
        """Status and document of one answer."""
        async with self._session.post(next(self._turns) + path, json=document) as answer:
            return answer.status, await answer.json(content_type=None)

    async def get(self, path: str) -> tuple[int, Document]:
        """Status and document of one answer, asked again where a process ended that had kept the connection."""
        for _ in range(ASKED_AGAIN):
            with contextlib.suppress(aiohttp.ServerDisconnectedError):
                return await self._asked(path)
        return await self._asked(path)

    async def _asked(self, path: str) -> tuple[int, Document]:
        async with self._session.get(next(self._turns) + path) as answer:
            return answer.status, await answer.json(content_type=None)

    async def delete(self, path: str) -> int:
        """Status of one answer."""
        async with self._session.delete(next(self._turns) + path) as answer:
            return answer.status

    async def bulk(self, operations: Iterable[Mapping[str, Any]]) -> list[Document]:
        """The results of one bulk request."""
        status, document = await self.post("/v1/bulk", {"operations": list(operations)})
        assert status == 200, document
        results: list[Document] = document["results"]
        return results


async def at_once(do: Callable[[Thing], Awaitable[Result]], things: Iterable[Thing]) -> list[Result]:
    """The results of doing something with each of many things, all at the same time."""
    return await asyncio.gather(*map(do, things))
