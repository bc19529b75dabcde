"""A server of one small page, and a caller of it."""

from collections.abc import AsyncIterator

import pytest

from tests.http.servers import Caller, Served, serving


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving() as served:
        yield served


@pytest.fixture
async def caller(served: Served) -> Caller:
    return await served.caller()
