"""Outboxes: tables in producers' databases whose rows the broker sends."""

import functools
from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqbroker.api.control import lists
from mqbroker.api.control.fields import Time, Whole
from mqbroker.api.control.lists import PageQuery
from mqbroker.api.control.resource import Resource, require_produce
from mqbroker.api.control.shapes import Given, Registered, Shape
from transactions.outboxes import models, registry


class OutboxSettings(Given):
    """The settings of an outbox. A field that is left out keeps its value; a new outbox needs `url` and `topics`."""

    url = Registered((registry.URL,))
    settings = Registered(registry.FIELDS)


class Outbox(Shape):
    """An outbox, with the progress of its draining."""

    name = serializers.CharField()
    server = serializers.CharField(
        help_text="The host in the URL; several hosts are separated by commas, each with its port if the ports differ."
    )
    port = Whole(allow_null=True, help_text="The port in the URL; null if its hosts have different ports.")
    database = serializers.CharField(help_text="The database in the URL.")
    user = serializers.CharField(help_text="The user in the URL: the role that drains the outbox.")
    settings = Registered(registry.FIELDS, answers=True)
    waiting = Whole(help_text="Rows that waited when the broker last looked, counted up to 100,000; at most 10 s old.")
    oldest_at = Time(allow_null=True, help_text="When the oldest waiting row was inserted.")
    drained = Whole(help_text="Rows whose messages were stored, in total.")
    refused = Whole(help_text="Rows that were moved to `mqbroker_outbox_refused` with a reason, in total.")
    refused_at = Time(allow_null=True, help_text="When the last such row was moved.")
    drained_at = Time(allow_null=True, help_text="When the last row was drained or refused.")
    looked_at = Time(allow_null=True, help_text="When a process last succeeded in looking for rows.")
    failure = serializers.CharField(
        allow_null=True, help_text="Why the outbox cannot be drained now, and what to do; null if it can."
    )
    failed_at = Time(allow_null=True, help_text="The first failure since the last success or change.")
    created_at = Time()


def found(request: Request, name: str) -> models.Outbox:
    """The outbox with this name, if the caller may send to its topics. Raises NoPermission otherwise."""
    row = registry.find(name)
    require_produce(request, row.topics)
    return row


class OutboxList(Resource):
    @extend_schema(operation_id="list_outboxes", parameters=[PageQuery], responses=lists.page_of(Outbox))
    def get(self, request: Request) -> Response:
        """Outboxes by name."""
        return lists.by_name(Outbox, self.query(PageQuery), registry.page)


class OutboxDetail(Resource):
    actions: ClassVar = {"PUT": "outbox.put", "DELETE": "outbox.delete"}

    @extend_schema(operation_id="get_outbox", responses=Outbox)
    def get(self, request: Request, name: str) -> Response:
        """Shows an outbox with the progress of its draining."""
        return Response(Outbox(registry.find(name)).data)

    @extend_schema(operation_id="put_outbox", request=OutboxSettings, responses={200: Outbox, 201: Outbox})
    def put(self, request: Request, name: str) -> Response:
        """Creates an outbox, or changes the given fields.

        The broker then takes committed rows from its table `mqbroker_outbox`, and stores each once as a message with
        the row's id.

        A change of `url` or `schema` is tried first: a database that the broker cannot drain is refused, with the
        statement that repairs it. If its server is away, the outbox is accepted and shown as failing.
        """
        given = self.body(OutboxSettings)
        before = self.standing(registry.named, name)
        require_produce(request, [*(before.topics if before else ()), *given.get("topics", ())])
        failure = registry.try_out(name, given)
        put = functools.partial(registry.put, name, given, failure)
        return self.kept(name, registry.named, put, lambda row: Outbox(row).data)

    @extend_schema(operation_id="delete_outbox", responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Deletes an outbox from the registry. Its table stays, with the rows that wait in it."""
        return self.removed(name, lambda: found(request, name), registry.remove)


PATHS = (
    ("v1/outboxes", OutboxList),
    ("v1/outboxes/<str:name>", OutboxDetail),
)
