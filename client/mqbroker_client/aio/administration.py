"""The administrative calls of a program's start, for tasks; they need the scope `manage`."""

from dataclasses import dataclass
from typing import Unpack

from mqbroker_client.administration import Endpoint, new_secret
from mqbroker_client.aio.connection import AsyncBroker
from mqbroker_client.calls import Document
from mqbroker_client.calls import administration as calls
from mqbroker_client.calls.administration import (
    ConsumerGroupSettings,
    EndpointSettings,
    ProducerGroupSettings,
    TopicSettings,
)
from mqbroker_client.errors import GroupNotExist


@dataclass(frozen=True, slots=True)
class AsyncAdmin:
    """Creates what a program needs; as `Admin`."""

    broker: AsyncBroker

    async def create_topic(self, topic: str, **settings: Unpack[TopicSettings]) -> Document:
        """Create it or change its settings; as `Admin.create_topic`."""
        return await self.broker.do(calls.put("topics", topic, settings))

    async def create_producer_group(self, group: str, **settings: Unpack[ProducerGroupSettings]) -> Document:
        """Create it or change its settings; as `Admin.create_producer_group`."""
        return await self.broker.do(calls.put("producer-groups", group, settings))

    async def create_consumer_group(self, group: str, **settings: Unpack[ConsumerGroupSettings]) -> Document:
        """Create it or change its settings; as `Admin.create_consumer_group`."""
        return await self.broker.do(calls.put("consumer-groups", group, settings))

    async def register_endpoint(
        self, group: str, url: str, *, secret: str | None = None, **settings: Unpack[EndpointSettings]
    ) -> Endpoint:
        """Have the group's checks asked at `url`; as `Admin.register_endpoint`."""
        secret = secret or new_secret()
        register = calls.register_endpoint(group, url, secret, settings)
        try:
            endpoint_id = await self.broker.do(register)
        except GroupNotExist:
            await self.create_producer_group(group)
            endpoint_id = await self.broker.do(register)
        return Endpoint(endpoint_id, url, secret)

    async def delete_endpoint(self, group: str, endpoint_id: str) -> None:
        """Have the group's checks asked there no longer."""
        await self.broker.do(calls.delete_endpoint(group, endpoint_id))
