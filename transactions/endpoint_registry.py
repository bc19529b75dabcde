"""Endpoints as producers and operators register them: made, changed, given new secrets and taken away."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from store.errors import GroupNotExist, MessageIllegal, Refusal
from transactions.models import Endpoint, ProducerGroup
from webhooks import registration, signing
from webhooks.breaker import Circuit

MAX_ENDPOINTS = 1000


class EndpointNotExist(Refusal):
    """The producer group has no endpoint of this id."""

    code = "not_found"


def page(group: ProducerGroup, after: int, count: int) -> Sequence[Endpoint]:
    """The group's endpoints in the order they were registered, the first `count` behind the id `after`."""
    return list(group.endpoints.filter(id__gt=after).order_by("id")[:count])


def find(group: ProducerGroup, endpoint_id: int) -> Endpoint:
    """The group's endpoint of this id.

    Raises EndpointNotExist.
    """
    endpoint = group.endpoints.filter(id=endpoint_id).first()
    if endpoint is None:
        raise EndpointNotExist(
            f"The producer group {group.name} has no endpoint {endpoint_id}: "
            f"GET /v1/producer-groups/{group.name}/endpoints lists them."
        )
    return endpoint


def register(group: ProducerGroup, given: Mapping[str, Any]) -> tuple[Endpoint, bool]:
    """Makes an endpoint, or changes the one that the group has at this `url` already: a producer may say at each of its
    starts where it is asked.

    Tells whether it was made. Raises MessageIllegal for a URL that may not be called, a secret that cannot sign, or too
    many endpoints.
    """
    existing = _at(group, given["url"])
    if existing is not None:
        return change(existing, given), False
    if group.endpoints.count() >= MAX_ENDPOINTS:
        raise MessageIllegal(f"The producer group {group.name} has {MAX_ENDPOINTS} endpoints, the limit: delete some.")
    registration.judge(given)
    new = {"secret": signing.make_secret(), **_set(given)}
    try:
        with transaction.atomic():
            return Endpoint.objects.create(group=group, **new), True
    except IntegrityError as problem:
        # Another process registered the same URL since we looked, or deleted the group.
        existing = _at(group, given["url"])
        if existing is None:
            raise GroupNotExist(f"The producer group {group.name} was just deleted.") from problem
        return change(existing, given), False


def _at(group: ProducerGroup, url: str) -> Endpoint | None:
    return group.endpoints.filter(url=url).first()


def change(endpoint: Endpoint, given: Mapping[str, Any]) -> Endpoint:
    """Changes the fields given. Whoever changes an endpoint vouches for it: its circuit is closed again.

    A `secret` replaces the one before as `rotate_secret` does. Raises MessageIllegal as `register` does, and when the
    group has another endpoint at the new URL.
    """
    changes = _set(given)
    registration.judge({name: value for name, value in changes.items() if value != getattr(endpoint, name)})
    if changes.get("secret", endpoint.secret) != endpoint.secret:
        changes.update(previous_secret=F("secret"), rotated_at=Now())
    healthy = Circuit()
    changes.update(state=healthy.state, failures=healthy.failures, open_until=healthy.open_until)
    try:
        with transaction.atomic():
            Endpoint.objects.filter(id=endpoint.id).update(**changes)
    except IntegrityError as problem:
        raise MessageIllegal(
            f"The producer group {endpoint.group.name} has another endpoint at {given['url'][:200]!r}: change that one."
        ) from problem
    endpoint.refresh_from_db()
    return endpoint


def rotate_secret(endpoint: Endpoint, secret: str | None) -> Endpoint:
    """Gives the endpoint a new secret, made when None is given. For ROTATION_HOURS the old one signs beside it.

    Raises MessageIllegal for a secret that cannot sign.
    """
    return change(endpoint, {"secret": secret or signing.make_secret()})


def remove(endpoint: Endpoint) -> None:
    """Takes an endpoint away; halves that named it are asked about at the group's others."""
    endpoint.delete()


def _set(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, without a secret that was not."""
    return {name: value for name, value in given.items() if not (name == "secret" and value is None)}
