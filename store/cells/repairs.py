"""Repairs: where a cell's copies of the configuration differ from what the control has, and how that is mended."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import Model

from store.cells import copies
from store.cells.cells import CellFacts

# Rows that a repair compares and writes at a time.
MAX_ROWS = 1000


class Difference(NamedTuple):
    """Rows of one table that a cell lacks or has otherwise than the control, and those that the control has not."""

    model: type[Model]
    lagging: Sequence[Any]
    extra: Sequence[Any]


# Of each table the rows by their primary keys, with the values of `configured`.
Rows = Mapping[type[Model], Mapping[Any, tuple[Any, ...]]]


def of_control(models: Iterable[type[Model]]) -> Rows:
    """What the control has of these tables."""
    return {model: _rows(DEFAULT_DB_ALIAS, model) for model in models}


def compare(cell: CellFacts, ours: Rows) -> Sequence[Difference]:
    """Where a cell's copies differ from what the control has, table by table; a change under way counts, too.

    Raises CellAway.
    """
    with copies.of_cell(cell) as theirs:
        return [found for model in ours if (found := _difference(theirs, model, ours[model])).lagging or found.extra]


def repair(cell: CellFacts, models: Sequence[type[Model]]) -> int:
    """Makes a cell's copies what the control has; returns how many rows it changed. Raises CellAway.

    Changes of the configuration wait meanwhile. `models` are in the order in which their rows refer to each other.
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
