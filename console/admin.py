"""The configuration as the admin shows it: tables to read, which the API changes; users to manage."""

from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

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


class ConsoleAdmin(ModelAdmin):  # type: ignore[misc]  # Unfold ships no types
    """What every table of the console has in common: its list is narrowed by the filters it declares and no others.

    Django's own rule lets the address filter by any column, so that `?secret__startswith=a` reads a secret letter by
    letter.
    """

    list_per_page = 50

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        declared = {entry[0] if isinstance(entry, tuple) else entry for entry in self.list_filter}
        return lookup.removesuffix("__exact") in declared


class ReadOnlyAdmin(ConsoleAdmin):
    """A table that every operator may read, and that is not changed here."""

    actions = None

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

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
    """Topics as they are configured; their queues have a page of their own."""

    list_display = ("name", "queues", "permission", "reserved_hours", CREATED)
    search_fields = ("name",)
    ordering = ("name",)


@admin.register(ProducerGroup)
class ProducerGroupAdmin(ReadOnlyAdmin):
    """Producer groups as they are configured; what they have pending has a page of its own."""

    list_display = ("name", "reject_transaction_message", "max_undecided", "checks_paused", CREATED)
    search_fields = ("name",)
    ordering = ("name",)


@admin.register(Endpoint)
class EndpointAdmin(ReadOnlyAdmin):
    """Endpoints and how they are. Their secrets are never shown."""

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
    """Consumer groups as they are configured; their lag has a page of its own."""

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


# Keys belong to the wiring, which is above the console: the registry of models hands the table down by its name.
@admin.register(apps.get_model("mqbroker", "ApiKey"))
class ApiKeyAdmin(ReadOnlyAdmin):
    """API keys by name. A key itself is kept nowhere, and its digest is not shown."""

    list_display = ("name", "hint", "shown_scopes", CREATED, "shown_expiry")
    search_fields = ("name",)
    ordering = ("name",)
    fields = ("name", "hint", "shown_scopes", "created_at", "shown_expiry")

    @admin.display(description="Scopes")
    def shown_scopes(self, key: Any) -> str:
        return ", ".join(key.scopes)

    @admin.display(description="Expires at", ordering="expires_at", empty_value="never")
    def shown_expiry(self, key: Any) -> object:
        return readable.clock(key.expires_at) if key.expires_at else None


# Nothing here is granted by groups of users: an operator may read everything, a superuser manages users.
admin.site.unregister([Group, User])


@admin.register(User)
class OperatorAdmin(UserAdmin, ConsoleAdmin):  # type: ignore[misc, type-arg]  # Unfold ships no types
    """Who may sign in to the console. Only superusers may see or change it: it is how one becomes a superuser."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", exact("last_login", "Last login"))
    list_filter = ()
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Access", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.may_manage(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.may_manage(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may_manage(request)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.may_manage(request)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.may_manage(request)

    def may_manage(self, request: HttpRequest) -> bool:
        """Whether the operator is a superuser."""
        return bool(request.user.is_active and request.user.is_superuser)
