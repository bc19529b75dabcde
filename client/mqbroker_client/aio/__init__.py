"""The client for event loops; it needs aiohttp: `pip install mqbroker-client[async]`."""

from mqbroker_client.aio.administration import AsyncAdmin
from mqbroker_client.aio.connection import AsyncBroker
from mqbroker_client.aio.consumers import AsyncConsumer
from mqbroker_client.aio.executor import AsyncCheckExecutor
from mqbroker_client.aio.hooks import AsyncHook
from mqbroker_client.aio.polling import AsyncCheckPoller
from mqbroker_client.aio.producers import AsyncProducer, AsyncTransaction
from mqbroker_client.aio.transactional import AsyncTransactionListener, AsyncTransactionProducer

__all__ = [
    "AsyncAdmin",
    "AsyncBroker",
    "AsyncCheckExecutor",
    "AsyncCheckPoller",
    "AsyncConsumer",
    "AsyncHook",
    "AsyncProducer",
    "AsyncTransaction",
    "AsyncTransactionListener",
    "AsyncTransactionProducer",
]
