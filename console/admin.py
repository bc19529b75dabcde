"""The configuration in Django's admin: read-only tables, which the API changes."""

from collections.abc import Callable

import django.contrib.auth.admin  # noqa: F401  # registers the users and groups that this module takes off
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.decorators import display

from access import roles
from console.templatetags import readable
from delivery.models import ConsumerGroup
from store.models import Segment, Topic
from transactions.models import Endpoint, ProducerGroup


def exact(field: str, words: str) -> Callable[[Model], SafeString | str]:
    """A column with the exact time of a field, as every page of the console shows it."""

    @admin.display(description=words, ordering=field)
    def column(row: Model) -> SafeString | str:
        return readable.clock(getattr(row, field))

    return column


CREATED = exact("created_at", "Created at")


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[misc]  # Unfold ships no types
    """The admin of a table that each console user may read and the admin site cannot change.

    A list may only be filtered by the filters that its table declares: Django would accept any column in the address,
    so that `?secret__startswith=a` would reveal a secret letter by letter.
    """

    actions = None
    list_per_page = 50

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        declared = {entry[0] if isinstance(entry, tuple) else entry for entry in self.list_filter}
        return lookup.removesuffix("__exact") in declared

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return roles.of(request.user) is not None

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Topic)
class TopicAdmin(ReadOnlyAdmin):
    """The configuration of topics; their queues have a separate page."""

    list_display = ("name", "queues", "permission", "reserved_hours", CREATED)
    search_fields = ("name",)
    ordering = ("name",)


@admin.register(ProducerGroup)
class ProducerGroupAdmin(ReadOnlyAdmin):
    """The configuration of producer groups; their pending transactions have a separate page."""

    list_display = ("name", "reject_transaction_message", "max_undecided", "checks_paused", CREATED)
    search_fields = ("name",)
    ordering = ("name",)


@admin.register(Endpoint)
class EndpointAdmin(ReadOnlyAdmin):
    """Endpoints and their health. Secrets are never shown."""

    list_display = (
        "url",
        "group",
        "shown_state",
        "failures",
        "last_failure",
        exact("last_success_at", "Last success at"),
    )
    list_select_related = ("group",)
    search_fields = ("url",)
    ordering = ("url",)
    exclude = ("secret", "previous_secret")

    @display(  # type: ignore[untyped-decorator]  # Unfold ships no types
        description="State",
        ordering="state",
        label={"healthy": "success", "open": "danger", "half_open": "warning", "disabled": "info"},
    )
    def shown_state(self, endpoint: Endpoint) -> str:
        return endpoint.state


@admin.register(ConsumerGroup)
class ConsumerGroupAdmin(ReadOnlyAdmin):
    """The configuration of consumer groups; their lag has a separate page."""

    list_display = ("name", "start_at", "ordered", "max_reconsume_times", "paused", CREATED)
    search_fields = ("name",)
    ordering = ("name",)


@admin.register(Segment)
class SegmentAdmin(ReadOnlyAdmin):
    """Segments, the latest first: the unit of retention."""

    list_display = (
        "id",
        "shown_state",
        exact("opened_at", "Opened at"),
        exact("closed_at", "Closed at"),
        exact("dropped_at", "Dropped at"),
    )
    ordering = ("-id",)

    @display(  # type: ignore[untyped-decorator]  # Unfold ships no types
        description="State", label={"open": "success", "ready": "info", "closed": "primary", "dropped": "danger"}
    )
    def shown_state(self, segment: Segment) -> str:
        return segment.state


# API keys and users have pages of the console.
admin.site.unregister([Group, User])
