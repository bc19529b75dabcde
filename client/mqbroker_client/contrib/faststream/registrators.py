"""The base of objects at which subscribers and publishers are declared: a broker, or a router that
a broker includes.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from faststream._internal.broker.registrator import Registrator
from faststream._internal.constants import EMPTY
from faststream.middlewares import AckPolicy

from mqbroker_client.contrib.faststream import subscribers
from mqbroker_client.contrib.faststream.connection import MqBrokerConfig
from mqbroker_client.contrib.faststream.publishers import (
    MqPublisher,
    MqPublisherConfig,
    MqPublisherSpecification,
    MqPublisherSpecificationConfig,
)
from mqbroker_client.contrib.faststream.subscribers import MqSubscriber, MqSubscriberSpecificationConfig
from mqbroker_client.core.messages import Delivery
from mqbroker_client.core.runs import Limits


class MqRegistrator(Registrator[Delivery, MqBrokerConfig]):
    """Declares subscribers and publishers; base of a broker and of a router."""

    def subscriber(  # type: ignore[override]  # FastStream's brokers narrow the arguments in this way, too
        self,
        topic: str,
        *,
        group: str,
        filter: str | Mapping[str, str] | None = None,
        max_workers: int = 1,
        ordered: bool | None = False,
        invisible_seconds: float = 60.0,
        ack_policy: AckPolicy = EMPTY,
        no_reply: bool = False,
        dependencies: Sequence[Any] = (),
        parser: Any = None,
        decoder: Any = None,
        codec: Any = None,
        persistent: bool = True,
        title: str | None = None,
        description: str | None = None,
        include_in_schema: bool = True,
    ) -> MqSubscriber:
        """Passes the messages of a topic to a handler, as a consumer of `group`.

        `max_workers` handlers run at a time. `filter` is a tag expression or `{"sql": …}`. `ordered` says whether the
        group is ordered; None asks the broker, for which the API key needs `manage`. A message is hidden from the group
        for `invisible_seconds`, and extended while its handler runs. By default, a handler's exception nacks its
        message.
        """
        limits = Limits(concurrency=max_workers, ordered=ordered, filter=filter, invisible_seconds=invisible_seconds)
        about = MqSubscriberSpecificationConfig(
            topic=topic, title_=title, description_=description, include_in_schema=include_in_schema
        )
        made = subscribers.make(self.config, about, group, limits, ack_policy=ack_policy, no_reply=no_reply)
        super().subscriber(made, persistent=persistent)
        return made.add_call(
            parser_=parser or self._parser,
            decoder_=decoder or self._decoder,
            codec_=codec,
            dependencies_=dependencies,
        )

    def publisher(  # type: ignore[override]  # FastStream's brokers narrow the arguments in this way, too
        self,
        topic: str,
        *,
        headers: dict[str, Any] | None = None,
        persistent: bool = True,
        title: str | None = None,
        description: str | None = None,
        schema: Any = None,
        include_in_schema: bool = True,
        **fields: Any,
    ) -> MqPublisher:
        """Publishes a handler's return value to a topic, with these `fields` of `mqbroker_client.Message`."""
        settings = MqPublisherConfig(
            _outer_config=self.config,  # type: ignore[arg-type]  # a composition of such configs
            topic=topic,
            headers=headers or {},
            fields=fields,
        )
        about = MqPublisherSpecificationConfig(
            topic=topic, title_=title, description_=description, schema_=schema, include_in_schema=include_in_schema
        )
        made = MqPublisher(settings, MqPublisherSpecification(self.config, about))  # type: ignore[arg-type]  # the type variables of MqPublisher are not covariant
        super().publisher(made, persistent=persistent)
        return made


class MqRouter(MqRegistrator):
    """Subscribers and publishers that are declared without a broker; a broker includes them by `include_router`."""

    def __init__(self, prefix: str = "", *, routers: Iterable[MqRegistrator] = (), **more: Any) -> None:
        super().__init__(config=MqBrokerConfig(prefix=prefix, **more), routers=routers)
