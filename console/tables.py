"""What the admin's tables have in common: exact times, and lists that are narrowed by declared filters only."""

from collections.abc import Callable

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin

from console.templatetags import readable


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
