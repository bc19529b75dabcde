"""`MqBroker`: FastStream's interface to this broker."""

import asyncio
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from faststream._internal.broker import BrokerUsecase
from faststream.specification.schema import BrokerSpec

from mqbroker_client.aio import AsyncBroker
from mqbroker_client.contrib.faststream.connection import MqBrokerConfig, MqProducer, Settings, config_of
from mqbroker_client.contrib.faststream.messages import MqMessage, MqPublishCommand
from mqbroker_client.contrib.faststream.registrators import MqRegistrator
from mqbroker_client.core.errors import BrokerError
from mqbroker_client.core.messages import Delivery

if TYPE_CHECKING:  # needs the extra `sqlalchemy`
    from mqbroker_client.contrib.sqlalchemy import Outbox
    from mqbroker_client.contrib.sqlalchemy.outbox import AnySession


class MqBroker(MqRegistrator, BrokerUsecase[Delivery, AsyncBroker, MqBrokerConfig]):
    """This broker for FastStream. `url` may have several URLs, separated by commas; `producer_group` sends.

    `publish(…, session=…)` needs an `outbox` of `mqbroker_client.contrib.sqlalchemy`. `options` are options of
    `AsyncBroker`; `settings` are the settings of each FastStream broker.
    """

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        producer_group: str = "faststream",
        outbox: "Outbox | None" = None,
        options: Mapping[str, Any] | None = None,
        routers: Iterable[MqRegistrator] = (),
        description: str | None = None,
        tags: Iterable[Any] = (),
        **settings: Unpack[Settings],
    ) -> None:
        producer = MqProducer(producer_group, outbox, settings.get("parser"), settings.get("decoder"))
        config = config_of(self, producer, settings)
        about = BrokerSpec(
            url=url.split(","),
            protocol="http",
            protocol_version="1",
            description=description,
            tags=tags,
            security=None,
        )
        super().__init__(
            config=config, specification=about, routers=routers, url=url, api_key=api_key, **(options or {})
        )

    async def _connect(self) -> AsyncBroker:
        connection = AsyncBroker(**self._connection_kwargs)
        self.config.broker_config.connect(connection)
        return connection

    async def start(self) -> None:
        """Connects, and starts the subscribers."""
        await self.connect()
        await super().start()

    async def stop(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> None:
        """Stops the subscribers, then closes the connection."""
        await super().stop(exc_type, exc_val, exc_tb)
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self.config.broker_config.connect(None)
            await connection.close()

    async def ping(self, timeout: float | None = None) -> bool:
        """Whether the broker answers that it is ready."""
        if self._connection is None:
            return False
        try:
            async with asyncio.timeout(timeout):
                await self._connection.call("GET", "/readyz")
        except (BrokerError, TimeoutError):
            return False
        return True

    async def publish(
        self,
        message: Any = None,
        topic: str = "",
        *,
        headers: dict[str, Any] | None = None,
        correlation_id: str | None = None,
        reply_to: str = "",
        session: "AnySession | None" = None,
        **fields: Any,
    ) -> Any:
        """Sends a message now; with `session`, in the transaction of this SQLAlchemy session: both, or neither.

        The headers become properties of the message. `fields` are fields of `mqbroker_client.Message`, such as `tags`,
        `sharding_key` and `delay_seconds`. Returns the send's result; None with a session.
        """
        cmd = MqPublishCommand(
            message,
            topic=topic,
            fields=fields,
            headers=headers,
            correlation_id=correlation_id or self.config.id_generator(),
            reply_to=reply_to,
            session=session,
        )
        return await self._basic_publish(cmd, producer=self.config.producer)

    async def publish_batch(  # type: ignore[override]  # FastStream's brokers narrow the arguments in this way, too
        self, *messages: Any, topic: str, headers: dict[str, Any] | None = None, **fields: Any
    ) -> Any:
        """Sends messages of one topic: all or none, in one queue."""
        cmd = MqPublishCommand(
            messages, topic=topic, fields=fields, headers=headers, correlation_id=self.config.id_generator()
        )
        return await self._basic_publish_batch(cmd, producer=self.config.producer)

    async def request(self, *args: Any, **more: Any) -> MqMessage:
        """Raises FeatureNotSupportedException."""
        return await self._basic_request(MqPublishCommand(None), producer=self.config.producer)  # type: ignore[no-any-return]  # the call always raises
