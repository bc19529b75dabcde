"""Repairs: finds where a cell's copies of the configuration differ from the control, and makes them equal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import Model

from store.cells import copies
from store.rows import CellFacts

# The most rows that a repair writes or deletes with one statement.
MAX_ROWS = 1000


class Difference(NamedTuple):
    """Primary keys of rows of one table: `lagging`: missing or different in the cell; `extra`: only in the cell."""

    model: type[Model]
    lagging: Sequence[Any]
    extra: Sequence[Any]


# The values of the fields `configured`, by table and primary key.
Rows = Mapping[type[Model], Mapping[Any, tuple[Any, ...]]]


def of_control(models: Iterable[type[Model]]) -> Rows:
    """The rows that these tables have at the control."""
    return {model: _rows(DEFAULT_DB_ALIAS, model) for model in models}


def compare(cell: CellFacts, ours: Rows) -> Sequence[Difference]:
    """The differences between a cell's copies and the control, one for each table that has some. Raises CellAway.

    A change that is under way may also appear as a difference.
    """
    with copies.of_cell(cell) as theirs:
        return [found for model in ours if (found := _difference(theirs, model, ours[model])).lagging or found.extra]


def repair(cell: CellFacts, models: Sequence[type[Model]]) -> int:
    """Makes a cell's copies equal to the control. Returns how many rows it changed. Raises CellAway.

    Changes of the configuration wait meanwhile. `models` are sorted: a table comes after the tables that its rows refer
    to.
    """
    with transaction.atomic():
        copies.hold()
        ours = of_control(models)
        with copies.of_cell(cell) as theirs:
            return _repair(theirs, [_difference(theirs, model, rows) for model, rows in ours.items()])


def _repair(alias: str, found: Sequence[Difference]) -> int:
    for each in reversed(found):
        for keys in _some(each.extra):
            each.model._default_manager.using(alias).filter(pk__in=keys).delete()
    for each in found:
        for keys in _some(each.lagging):
            copies.put(alias, list(each.model._default_manager.filter(pk__in=keys)), copies.configured(each.model))
    return sum(len(each.lagging) + len(each.extra) for each in found)


def _rows(alias: str, model: type[Model]) -> dict[Any, tuple[Any, ...]]:
    found = model._default_manager.using(alias).values_list("pk", *copies.configured(model))
    return {row[0]: row[1:] for row in found}


def _difference(alias: str, model: type[Model], ours: Mapping[Any, tuple[Any, ...]]) -> Difference:
    theirs = _rows(alias, model)
    return Difference(
        model,
        [key for key, values in ours.items() if theirs.get(key) != values],
        [key for key in theirs if key not in ours],
    )


def _some(keys: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (keys[start : start + MAX_ROWS] for start in range(0, len(keys), MAX_ROWS))
