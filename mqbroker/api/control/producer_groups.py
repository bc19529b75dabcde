"""Producer groups: create, change, list and delete, with the number of undecided transactions."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqbroker.api.control import lists
from mqbroker.api.control.fields import Text, Time, Whole, Words
from mqbroker.api.control.lists import PageQuery
from mqbroker.api.control.resource import Resource
from mqbroker.api.control.shapes import Given, Registered, Shape
from store.cells import cells
from transactions import models as transactions
from transactions import registry, stats


class ProducerGroupSettings(Given):
    """The settings of a producer group. A field that is left out keeps its value; a new group gets the default."""

    settings = Registered(registry.FIELDS)


class ProducerGroupSummary(Shape):
    """The settings of a producer group."""

    name = serializers.CharField()
    settings = Registered(registry.FIELDS, answers=True)
    created_at = Time()


class Pending(Shape):
    """The number of a producer group's PREPARED transactions, and the time of the oldest."""

    pending = Whole(
        help_text=f"Pending transactions, counted to {stats.MAX_COUNTED}; discarded transactions are not included."
    )
    oldest_pending_at = Time(allow_null=True)
    missing = Words(child=Text(), help_text="The cells that did not answer: their messages are not counted.")


class ProducerGroup(ProducerGroupSummary, Pending):
    """A producer group with the number of its PREPARED transactions and the time of the oldest."""


def document(group: transactions.ProducerGroup) -> dict[str, object]:
    """The document of a group: the values of the fields of `ProducerGroup`."""
    with cells.leaving_out() as missing:
        pending = stats.of_group(group.id)._asdict()
    return {**ProducerGroupSummary(group).data, **Pending({**pending, "missing": missing}).data}


class ProducerGroupList(Resource):
    in_namespaces = True

    @extend_schema(
        operation_id="list_producer_groups", parameters=[PageQuery], responses=lists.page_of(ProducerGroupSummary)
    )
    def get(self, request: Request) -> Response:
        """Lists producer groups by name."""
        return lists.by_name(ProducerGroupSummary, self.query(PageQuery), registry.page, self.narrowed_to)


class ProducerGroupDetail(Resource):
    in_namespaces = True
    actions: ClassVar = {"PUT": "producer_group.put", "DELETE": "producer_group.delete"}

    @extend_schema(operation_id="get_producer_group", responses=ProducerGroup)
    def get(self, request: Request, group: str) -> Response:
        """Shows a producer group with the number of its undecided transactions."""
        return Response(document(registry.find(group)))

    @extend_schema(
        operation_id="put_producer_group",
        request=ProducerGroupSettings,
        responses={200: ProducerGroup, 201: ProducerGroup},
    )
    def put(self, request: Request, group: str) -> Response:
        """Creates a producer group, or changes the given fields.

        The change applies to every request after the answer.
        """
        given = self.body(ProducerGroupSettings)
        return self.kept(group, registry.named, lambda: registry.put(group, given), document)

    @extend_schema(operation_id="delete_producer_group", responses={204: None})
    def delete(self, request: Request, group: str) -> Response:
        """Deletes a producer group with its endpoints; refused while it has undecided transactions."""
        return self.removed(group, lambda: registry.find(group), lambda row: registry.remove(row.name))
