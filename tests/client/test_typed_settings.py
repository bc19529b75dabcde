"""The settings that the client's types name are those that the broker takes."""

import inspect

import pytest
from mqbroker_client import Broker
from mqbroker_client.aio import AsyncBroker
from mqbroker_client.core.calls import administration
from mqbroker_client.core.requests import Options
from rest_framework.serializers import Serializer

from mqbroker.api.control import consumer_groups, endpoints, producer_groups, topics

# Arguments of their own.
NAMED = {"url", "secret"}


@pytest.mark.parametrize(
    ("settings", "taken"),
    [
        (administration.TopicSettings, topics.TopicSettings),
        (administration.ProducerGroupSettings, producer_groups.ProducerGroupSettings),
        (administration.ConsumerGroupSettings, consumer_groups.ConsumerGroupSettings),
        (administration.EndpointSettings, endpoints.EndpointSettings),
    ],
)
def test_the_client_names_every_setting_that_the_broker_takes(settings: type, taken: type[Serializer[object]]) -> None:
    assert set(settings.__annotations__) == set(taken().fields) - NAMED


@pytest.mark.parametrize("broker", [Broker, AsyncBroker])
def test_a_broker_of_the_environment_takes_every_option(broker: type) -> None:
    taken = inspect.signature(broker).parameters.values()

    assert set(Options.__annotations__) == {one.name for one in taken if one.kind is one.KEYWORD_ONLY}
