"""Endpoints: the URLs at which producer groups are asked, their registration, and which endpoints may be called now."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from store.cells import copies
from store.db import connections, fields
from store.db.statements import Statement
from store.errors import GroupNotExist, MessageIllegal, SystemBusy
from transactions.errors import EndpointNotExist
from transactions.models import Endpoint, ProducerGroup
from transactions.reads import health as endpoint_health
from transactions.rows import EndpointRow, ProducerGroupRow
from webhooks import registration, signing
from webhooks.callees import ROTATION_HOURS, Callee, Health

CLAIM_PROBE = Statement(__file__, "claim_probe", one=int)
FIND_CALLABLE_ENDPOINTS = Statement(__file__, "find_callable_endpoints", EndpointRow)
FIND_ENDPOINT = Statement(__file__, "find_endpoint", one=int)
UPDATE_CIRCUIT = Statement(__file__, "update_circuit", one=str)

MAX_ENDPOINTS = 1000
FIELDS = fields.of(
    Endpoint,
    registration.URL,
    fields.Whole("max_batch", "Transactions in a check", help="Transactions in one check", least=1, most=1000),
    registration.TIMEOUT,
    registration.CONCURRENCY,
)
# The fields that change how an endpoint is called, but not its URL.
PACE = fields.named(FIELDS, "max_batch", "timeout_seconds", "concurrency")

health = Health(CLAIM_PROBE, UPDATE_CIRCUIT)


async def of_url(group: ProducerGroupRow | None, group_name: str, url: str) -> int:
    """The id of the group's endpoint at this URL. `group` is None if the group does not exist yet.

    Raises MessageIllegal if the group has no endpoint at this URL.
    """
    found: Sequence[int] = ()
    # PostgreSQL refuses a NUL in a text, and no endpoint's URL has one.
    if group is not None and "\x00" not in url:
        found = await connections.read_control(FIND_ENDPOINT, {"group_id": group.id, "url": url})
    if not found:
        raise MessageIllegal(
            f"check_url {url[:200]!r} is not an endpoint of the producer group {group_name}: register it at "
            f"POST /v1/producer-groups/{group_name}/endpoints."
        )
    return found[0]


async def callable_endpoints(group_id: int) -> Sequence[Callee]:
    """The endpoints of a group that may be called now, by the database's clock."""
    rows = await connections.read(FIND_CALLABLE_ENDPOINTS, {"group_id": group_id, "rotation_hours": ROTATION_HOURS})
    found = (Callee.of_readable(row) for row in rows)
    return [callee for callee in found if callee is not None]


def page(group: ProducerGroup, after: int, count: int) -> Sequence[Endpoint]:
    """The group's endpoints in the order of their registration: the first `count` after the id `after`."""
    return endpoint_health.show(list(group.endpoints.filter(id__gt=after).order_by("id")[:count]))


def find(group: ProducerGroup, endpoint_id: int) -> Endpoint:
    """The group's endpoint with this id. Raises EndpointNotExist."""
    endpoint = group.endpoints.filter(id=endpoint_id).first()
    if endpoint is None:
        raise EndpointNotExist(
            f"The producer group {group.name} has no endpoint {endpoint_id}: "
            f"GET /v1/producer-groups/{group.name}/endpoints lists them."
        )
    return endpoint_health.show([endpoint])[0]


def register(group: ProducerGroup, given: Mapping[str, Any]) -> tuple[Endpoint, bool]:
    """Creates an endpoint, or changes the group's endpoint at this `url`. Returns the endpoint and whether it is new.

    So a producer may register its endpoint at every start. Raises MessageIllegal for a URL that may not be called, a
    secret that cannot sign, or too many endpoints.
    """
    existing = _at(group, given["url"])
    if existing is not None:
        return change(existing, given), False
    if group.endpoints.count() >= MAX_ENDPOINTS:
        raise MessageIllegal(
            f"The producer group {group.name} has {MAX_ENDPOINTS} endpoints, the limit: delete an endpoint first."
        )
    registration.validate(given)
    new = {**given, "secret": given.get("secret") or signing.make_secret()}
    try:
        with transaction.atomic():
            endpoint = Endpoint.objects.create(group=group, **new)
            copies.write(Endpoint, [endpoint.id])
            return endpoint, True
    except IntegrityError as problem:
        # Another process has registered the same URL or deleted the group after the read above.
        existing = _at(group, given["url"])
        if existing is None:
            raise GroupNotExist(f"The producer group {group.name} was deleted during this request.") from problem
        return change(existing, given), False


def _at(group: ProducerGroup, url: str) -> Endpoint | None:
    return group.endpoints.filter(url=url).first()


def change(endpoint: Endpoint, given: Mapping[str, Any]) -> Endpoint:
    """Changes the given fields and closes the circuit, so that an operator can enable a disabled endpoint.

    A `secret` replaces the earlier one, as `rotate_secret` does. Raises MessageIllegal as `register` does, and if the
    group has another endpoint at the new URL.
    """
    registration.validate({name: value for name, value in given.items() if value != getattr(endpoint, name)})
    changes = {**registration.changes(endpoint, given), "void_answers": 0, "void_since": None, "failing_since": None}
    try:
        with transaction.atomic():
            Endpoint.objects.filter(id=endpoint.id).update(**changes)
            copies.write(Endpoint, [endpoint.id], besides=changes)
    except IntegrityError as problem:
        raise MessageIllegal(
            f"The producer group {endpoint.group.name} already has another endpoint at "
            f"{given['url'][:200]!r}: change the other endpoint instead."
        ) from problem
    endpoint.refresh_from_db()
    return endpoint


def rotate_secret(endpoint: Endpoint, secret: str | None) -> Endpoint:
    """Gives the endpoint a new secret; with None, a random secret. For ROTATION_HOURS calls are also signed with the
    old secret.

    Raises MessageIllegal for a secret that cannot sign.
    """
    return change(endpoint, {"secret": secret or signing.make_secret()})


def signing_secrets(endpoint: Endpoint) -> Sequence[str]:
    """The secrets that sign now: the old and the new secret for ROTATION_HOURS after a rotation, by the database's
    clock.

    Raises SystemBusy if this process has no key to open them.
    """
    if not endpoint.secret:
        raise SystemBusy(
            f"The secret of the endpoint {endpoint.url} cannot be decrypted: its key is not in MQBROKER_SECRETS_KEYS."
        )
    recent = Endpoint.objects.filter(id=endpoint.id, rotated_at__gt=Now() - timedelta(hours=ROTATION_HOURS))
    if endpoint.previous_secret is None or not recent.exists():
        return (endpoint.secret,)
    return (endpoint.secret, endpoint.previous_secret)


def remove(endpoint: Endpoint) -> None:
    """Deletes an endpoint. For half messages that named the endpoint, the group's other endpoints are asked."""
    with copies.change():
        endpoint_id = endpoint.id
        endpoint.delete()
        copies.write(Endpoint, [endpoint_id])
