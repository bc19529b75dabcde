"""The binary form of arrays: what is packed is what PostgreSQL reads."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.db import arrays
from tests.broker import databases

INT4 = st.integers(-(2**31), 2**31 - 1)
INT8 = st.integers(-(2**63), 2**63 - 1)
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001  # bounds
COLUMNS: dict[str, tuple[Callable[[Any], bytes], st.SearchStrategy[Any]]] = {
    "integer": (arrays.int4s, INT4),
    "bigint": (arrays.int8s, INT8),
    "double precision": (arrays.float8s, st.floats(allow_nan=False)),
    "timestamptz": (arrays.timestamps, TIMES),
    "text": (arrays.texts, st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))),
    "bytea": (arrays.byteas, st.binary()),
}
FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def reader(prepared: str) -> Iterator[psycopg.Connection[Any]]:
    """A session that gives back what it is given."""
    with (
        databases.copied(prepared) as database_url,
        psycopg.connect(database_url, autocommit=True, options="-c TimeZone=UTC") as connection,
    ):
        yield connection


@pytest.mark.parametrize("type_", COLUMNS)
@FEW
@given(data=st.data())
def test_an_array_comes_back_as_it_was_packed(type_: str, data: st.DataObject, reader: psycopg.Connection[Any]) -> None:
    pack, elements = COLUMNS[type_]
    values = data.draw(st.lists(st.none() | elements, max_size=20)) * data.draw(st.sampled_from((1, 100)))

    assert read_back(reader, type_, pack(values)) == values


@FEW
@given(values=st.lists(st.uuids(), max_size=20))
def test_ids_come_back_as_they_were_packed(values: list[UUID], reader: psycopg.Connection[Any]) -> None:
    assert read_back(reader, "uuid", arrays.uuids([value.bytes for value in values])) == values


@FEW
@given(value=TIMES)
def test_a_time_is_read_as_postgresql_sends_it(value: datetime, reader: psycopg.Connection[Any]) -> None:
    cursor = reader.cursor(binary=True)
    cursor.execute("SELECT %s::timestamptz", (value,))
    assert cursor.pgresult is not None

    assert arrays.moment(cursor.pgresult.get_value(0, 0) or b"") == value


def read_back(reader: psycopg.Connection[Any], type_: str, packed: bytes) -> Sequence[Any]:
    """The elements of an array as PostgreSQL understands it."""
    result = reader.pgconn.exec_params(f"SELECT $1::{type_} []".encode(), [packed], param_formats=[1])
    assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message
    cursor = reader.execute(f"SELECT %s::{type_} []".encode(), [(result.get_value(0, 0) or b"").decode()])
    row = cursor.fetchone()
    assert row is not None
    values: Sequence[Any] = row[0]
    return values
