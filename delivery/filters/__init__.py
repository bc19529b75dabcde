"""Filters: which messages of a topic a consumer wants."""

from delivery.filters.forms import SCHEMA, Filter, parse, parse_in_turn

__all__ = ["SCHEMA", "Filter", "parse", "parse_in_turn"]
