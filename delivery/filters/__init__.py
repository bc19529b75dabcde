"""Filters: which messages of a topic a consumer wants."""

from delivery.filters.forms import Filter, parse, parse_in_turn

__all__ = ["Filter", "parse", "parse_in_turn"]
