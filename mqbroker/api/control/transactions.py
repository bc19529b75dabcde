"""Lists transactions by state, group, topic and age."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqbroker.api.control import lists
from mqbroker.api.control.fields import Choice, Strict, Time, Whole
from mqbroker.api.control.lists import PageQuery
from mqbroker.api.control.resource import Resource
from mqbroker.api.control.shapes import Shape
from store.reading import cursors
from transactions.reads import listing, undecided
from transactions.reads.listing import Cursor, Wanted
from transactions.reads.undecided import DiscardedCursor


class TransactionQuery(PageQuery):
    """The query parameters of the list of transactions."""

    state = Choice("TransactionState", listing.STATES, default=None)
    producer_group = serializers.CharField(default=None, trim_whitespace=False)
    topic = serializers.CharField(
        default=None, trim_whitespace=False, help_text="Only transactions with a message of this topic."
    )
    older_than_seconds = serializers.FloatField(
        default=0,
        min_value=0,
        max_value=listing.MAX_AGE_SECONDS,
        error_messages={**Strict.default_error_messages, "invalid": "it is not a number."},
        help_text="Only transactions that were begun at least this number of seconds ago.",
    )


class TransactionMessage(Shape):
    """A message of a transaction; its offset is null until it is visible."""

    message_id = serializers.UUIDField()
    topic = serializers.CharField()
    queue_id = Whole()
    queue_offset = Whole(allow_null=True)


class TransactionSummary(Shape):
    """A transaction with its present state; GET /v1/transactions/{transaction_id} has its history."""

    transaction_id = serializers.UUIDField()
    producer_group = serializers.CharField()
    state = Choice("TransactionState", listing.STATES)
    check_times = Whole()
    next_check_at = Time(allow_null=True)
    last_failure = serializers.CharField(allow_null=True)
    stored_at = Time()
    decided_at = Time(allow_null=True)
    decided_by = serializers.CharField(allow_null=True)
    commit_log_offset = Whole()
    messages = TransactionMessage(many=True)


class TransactionList(Resource):
    in_namespaces = True

    @extend_schema(
        operation_id="list_transactions",
        parameters=[TransactionQuery],
        responses=lists.page_of_cells(TransactionSummary),
    )
    def get(self, request: Request) -> Response:
        """Lists transactions: first the undecided ones, the latest begun first, then the decided ones, the latest
        decided first.

        A page may have fewer than `limit` transactions, even none, while `next` is not null, because a filter reads a
        limited number of decisions per request. Follow `next` until it is null. The list is complete if its last page
        has no `missing`.
        """
        asked = self.query(TransactionQuery)
        limit = asked.pop("limit")
        after = cursors.decode_each(asked.pop("cursor"), Cursor)
        page = listing.page(Wanted(**asked, namespace=self.narrowed_to), after, limit)
        return Response(document(page))


class DiscardedQuery(PageQuery):
    """The query parameters of the list of discarded transactions."""

    producer_group = serializers.CharField(default=None, trim_whitespace=False)
    topic = serializers.CharField(
        default=None, trim_whitespace=False, help_text="Only transactions with a message of this topic."
    )

    def get_fields(self) -> dict[str, Any]:
        """Renames the field, because `from` is a keyword of Python."""
        times = {
            "from": "Only transactions discarded at this time or later.",
            "to": "Only transactions discarded before this time.",
        }
        return {
            **super().get_fields(),
            **{name: Time(default=None, help_text=meaning) for name, meaning in times.items()},
        }


class DiscardedList(Resource):
    in_namespaces = True

    @extend_schema(
        operation_id="list_discarded", parameters=[DiscardedQuery], responses=lists.page_of_cells(TransactionSummary)
    )
    def get(self, request: Request) -> Response:
        """Lists discarded transactions, the latest first. An operator can resume or resolve each of them."""
        asked = self.query(DiscardedQuery)
        after = cursors.decode_each(asked["cursor"], DiscardedCursor)
        wanted = Wanted(producer_group=asked["producer_group"], topic=asked["topic"], namespace=self.narrowed_to)
        page = undecided.discarded(wanted, asked["from"], asked["to"], after, asked["limit"])
        return Response(document(page))


def document(page: listing.Page[Any]) -> dict[str, object]:
    """The document of a page of transactions, with the cursor of the next page."""
    return {
        "results": TransactionSummary(page.rows, many=True).data,
        "next": cursors.encode_each(page.after),
        "missing": page.missing,
    }
