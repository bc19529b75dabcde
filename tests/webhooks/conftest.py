"""The characters of the tests of outgoing HTTP."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from store.process import runtime
from store.process.runtime import Runtime
from tests.webhooks.strangers import Stranger
from webhooks.addresses import parse_networks
from webhooks.caller import Caller
from webhooks.signing import make_secret


@pytest.fixture(autouse=True)
def process() -> Iterator[Runtime]:
    """The runtime of a process of the broker, with the threads that look hosts up at registration."""
    with runtime.installed(Runtime()) as installed:
        yield installed


@pytest.fixture
def secret() -> str:
    """The secret of a registered endpoint."""
    return make_secret()


@pytest_asyncio.fixture
async def caller() -> AsyncIterator[Caller]:
    """A broker whose operator allows loopback, as the embedded profile does."""
    async with Caller(parse_networks("127.0.0.0/8,::1/128")) as caller:
        yield caller


@pytest_asyncio.fixture
async def strict_caller() -> AsyncIterator[Caller]:
    """A broker whose operator allows nothing beyond public addresses."""
    async with Caller(()) as caller:
        yield caller


@pytest_asyncio.fixture
async def stranger() -> AsyncIterator[Stranger]:
    """A foreign server."""
    async with Stranger() as stranger:
        yield stranger
