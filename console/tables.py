"""The common parts of the admin's tables: exact times, and lists that only declared filters may filter."""

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
    """The base of the console's tables: only filters that a table declares may filter its list.

    Django allows the address to filter by any column, so that `?secret__startswith=a` would reveal a secret letter by
    letter.
    """

    list_per_page = 50

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        declared = {entry[0] if isinstance(entry, tuple) else entry for entry in self.list_filter}
        return lookup.removesuffix("__exact") in declared
