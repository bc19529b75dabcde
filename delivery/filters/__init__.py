"""Filters: which messages of a topic a consumer wants."""

from delivery.filters.forms import Filter, parse

__all__ = ["Filter", "parse"]
