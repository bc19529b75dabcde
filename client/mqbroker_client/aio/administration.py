"""The few administrative calls that a program makes for itself when it starts; they need the scope `manage`."""

from dataclasses import dataclass
from typing import Unpack

from mqbroker_client.aio.connection import AsyncBroker
from mqbroker_client.core.calls import administration as calls
from mqbroker_client.core.calls.administration import (
    ConsumerGroupSettings,
    EndpointSettings,
    ProducerGroupSettings,
    TopicSettings,
)
from mqbroker_client.core.documents import Document
from mqbroker_client.core.endpoints import Endpoint, new_secret
from mqbroker_client.core.errors import GroupNotExist

__all__ = ["AsyncAdmin", "Endpoint", "new_secret"]


@dataclass(frozen=True, slots=True)
class AsyncAdmin:
    """Creates what a program needs: topics, groups and endpoints. Each call may be repeated at every start."""

    broker: AsyncBroker

    async def create_topic(self, topic: str, **settings: Unpack[TopicSettings]) -> Document:
        """Create a topic or change its settings (`queues`, `reserved_hours`, `permission`); returns the topic."""
        return await self.broker.do(calls.put("topics", topic, settings))

    async def create_producer_group(self, group: str, **settings: Unpack[ProducerGroupSettings]) -> Document:
        """Create a producer group or change its settings, and return the group.

        The settings: `reject_transaction_message`, `max_undecided`, `checks_paused`, `api_keys`.
        """
        return await self.broker.do(calls.put("producer-groups", group, settings))

    async def create_consumer_group(self, group: str, **settings: Unpack[ConsumerGroupSettings]) -> Document:
        """Create a consumer group or change its settings, and return the group.

        The settings are the fields of `ConsumerGroupSettings`, for instance `start_at`, `ordered` and `queue_order`.
        """
        return await self.broker.do(calls.put("consumer-groups", group, settings))

    async def register_endpoint(
        self, group: str, url: str, *, secret: str | None = None, **settings: Unpack[EndpointSettings]
    ) -> Endpoint:
        """Register `url` as an endpoint of the group's checks; settings: `max_batch`, `timeout_seconds`, `concurrency`.

        Without a `secret` the client makes one, because the broker shows a secret only once: a registration that is
        repeated after a lost answer would not get the secret. Instances that share a URL must share a secret: give it
        here. The broker creates a missing group.
        """
        secret = secret or new_secret()
        register = calls.register_endpoint(group, url, secret, settings)
        try:
            endpoint_id = await self.broker.do(register)
        except GroupNotExist:
            await self.create_producer_group(group)
            endpoint_id = await self.broker.do(register)
        return Endpoint(endpoint_id, url, secret)

    async def delete_endpoint(self, group: str, endpoint_id: str) -> None:
        """Delete an endpoint: the broker sends it no more checks."""
        await self.broker.do(calls.delete_endpoint(group, endpoint_id))
