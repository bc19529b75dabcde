"""A list of the control plane asks a fixed number of statements, however many things it shows."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from access.models import ApiKey
from delivery.models import ConsumerGroup, Subscription
from store.models import Topic
from transactions.models import Endpoint, ProducerGroup

SHOWN = 30
# Of the session and its user: a superuser's groups are not read.
OF_THE_CALLER = 2
URL = "https://shop.example/checks"


def endpoint(name: str) -> None:
    """An endpoint of the group shop."""
    group, _ = ProducerGroup.objects.get_or_create(name="shop")
    Endpoint.objects.create(group=group, url=f"{URL}/{name}", secret="whsec_c2VjcmV0")


def subscription(name: str) -> None:
    """A subscription that pushes to a server of its own."""
    fields: dict[str, Any] = {"group_name": "mails", "topic_name": "orders", "url": f"{URL}/{name}"}
    Subscription.objects.create(name=name, secret="whsec_c2VjcmV0", **fields)


# What makes one thing of a list, and the statements of the list itself.
LISTS: dict[str, tuple[Callable[[str], object], int]] = {
    "/v1/topics": (lambda name: Topic.objects.create(name=name, queues=4), 3),
    "/v1/producer-groups": (lambda name: ProducerGroup.objects.create(name=name), 1),
    # The group, then its endpoints.
    "/v1/producer-groups/shop/endpoints": (endpoint, 2),
    "/v1/consumer-groups": (lambda name: ConsumerGroup.objects.create(name=name, retry_policy={"kind": "none"}), 1),
    "/v1/subscriptions": (subscription, 1),
    "/v1/api-keys": (lambda name: ApiKey.objects.create(name=name, digest=name.encode(), scopes=["metrics"]), 1),
}


@pytest.mark.parametrize("path", LISTS)
def test_a_list_asks_as_many_statements_for_many_as_for_one(
    admin_client: Client, django_assert_num_queries: DjangoAssertNumQueries, path: str
) -> None:
    make, statements = LISTS[path]
    for number in range(SHOWN):
        make(f"thing-{number:02}")

    for shown in (1, SHOWN):
        with django_assert_num_queries(OF_THE_CALLER + statements):
            answer = admin_client.get(path, {"limit": shown})

        assert (answer.status_code, len(answer.json()["results"])) == (200, shown), answer.content
