"""Rows that a producer may insert and that no message can be made of, or only just; each with what becomes of it."""

from typing import NamedTuple

SENT = ""


class Hostile(NamedTuple):
    """A row by its columns, as SQL says them, and a word of the reason that it is set apart with; SENT: it is sent."""

    word: str
    columns: dict[str, str]


def row(word: str, **columns: str) -> Hostile:
    """A row with a body, unless it says another one."""
    body = {} if {"body", "body_bytes"} & columns.keys() else {"body": "'hostile'"}
    return Hostile(word, {**body, **columns})


ROWS = [
    *[
        row("properties", properties=text)
        for text in (
            "'{\"a\": 1e5000}'",
            "'{\"a\": -1e131071}'",
            '\'{"a": "b", "c": 7}\'',
            "'{\"a\": null}'",
            "'{\"a\": true}'",
            '\'{"a": {"b": "c"}}\'',
            "'[]'",
            "'\"text\"'",
            "'7'",
            "(repeat('[', 2000) || repeat(']', 2000))::jsonb",
            "(SELECT jsonb_object_agg('name ' || n, 'x') FROM generate_series(1, 129) AS n)",
            "jsonb_build_object('a', repeat('x', 20000))",
            "jsonb_build_object(repeat('n', 20000), 'x')",
            "jsonb_build_object('a', repeat('x', 15000000))",
            "(SELECT jsonb_object_agg('name ' || n, repeat('x', n)) FROM generate_series(1, 2000) AS n)",
            '\'{"a": ["b"]}\'',
            "'true'",
        )
    ],
    row("property", properties='\'{"": "x"}\''),
    row("property", properties='\'{"KEYS": "x"}\''),
    row("property", properties="jsonb_build_object('a', E'x\\x07')"),
    row("property", properties="jsonb_build_object('a', E'x\\n')"),
    row("property", properties="jsonb_build_object(E'a\\n', 'x')"),
    *[row(SENT, properties=text) for text in ("'null'", "'{}'", '\'{"naïve ключ": "x"}\'')],
    *[
        row("keys", keys=text)
        for text in (
            "ARRAY[NULL]::text[]",
            "ARRAY['a', NULL]",
            "ARRAY['']",
            "ARRAY['a b']",
            "ARRAY[E'a\\tb']",
            "'{{a,b},{c,d}}'",
            "ARRAY[repeat('k', 20000)]",
            "ARRAY[E'a\\n']",
            "ARRAY[repeat('k', 15000000)]",
        )
    ],
    # Ten times as many would take longer to write as JSON than a statement may.
    row("keys has at least", keys="array_fill('k'::text, ARRAY[2000000])"),
    *[row(SENT, keys=text) for text in ("'{}'", "'[5:6]={a,b}'", '\'{NULLS,"null","{}"}\'')],
    *[row("tags", tags=text) for text in ("''", "'   '", "'a||b'", "E'a\\nb'", "E'a\\n'", "repeat('t', 20000)")],
    *[row("sharding_key", sharding_key=text) for text in ("''", "' '", "repeat('s', 65)", "E'a\\x01'", "E'a\\n'")],
    *[
        row("topic", topic=text)
        for text in (
            "''",
            "' '",
            "'bad topic'",
            "'bad' || repeat('t', 300)",
            "E'bad\\x01'",
            "E'bad\\n'",
            "'bad*'",
            "'bad.topic'",
            "'bädtopic'",
            "'another'",
            "'RMQ_SYS_TRANS_HALF_TOPIC'",
            "'%RETRY%bad'",
            "'RMQ_SYS_TRANS_OP_HALF_TOPIC'",
            "'%DLQ%bad'",
        )
    ],
    *[
        row("body", body=text)
        for text in ("''", "NULL", "repeat('x', 4194305)", "repeat('ж', 2097153)", "repeat('x', 40000000)")
    ],
    row("body", body_bytes="''"),
    row("body", body_bytes="decode(repeat('00', 5000000), 'hex')"),
    row("body", body="'x'", body_bytes="'x'"),
    row(SENT, body="'naïve 🎉'"),
    row(SENT, body_bytes="'\\xff00'"),
    *[
        row(SENT, body=text)
        for text in ("chr(1114111) || chr(65535) || chr(8238)", "E'\\x01\\x7f'", "repeat('x', 4194304)")
    ],
    *[row("delay_level", delay_level=text) for text in ("-1", "-2147483648")],
    *[row(SENT, delay_level=text) for text in ("18", "2147483647")],
    row("delay_level", delay_level="1", delay_seconds="5"),
    row(SENT, delay_level="0"),
    *[
        row("delay_seconds", delay_seconds=text)
        for text in ("1e9", "1e308", "-1", "'NaN'", "'Infinity'", "'-Infinity'")
    ],
    *[row(SENT, delay_seconds=text) for text in ("0", "'-0'", "5e-324")],
    row("delay", delay_seconds="5", deliver_at="now()"),
    *[
        row("deliver_at", deliver_at=text)
        for text in (
            "'9998-12-31'",
            "'9999-12-31 23:59:59.999999 UTC'",
            "'9999-12-31 23:59:59.999999-15'",
            "'infinity'",
            "'-infinity'",
            "'0044-03-15 BC'",
            "'20000-01-01'",
        )
    ],
    row(SENT, deliver_at="'2000-01-01'"),
    row("traceparent", traceparent="repeat('t', 100000)"),
    row("traceparent", traceparent="E'00-\\x01'"),
    row("traceparent", traceparent="E'00-ab-cd-01\\n'"),
    *[row(SENT, traceparent=text) for text in ("''", "'nonsense'", "'ж'")],
    *[row("created_at", created_at=text) for text in ("'infinity'", "'-infinity'", "'0044-03-15 BC'", "'20000-01-01'")],
    *[row(SENT, created_at=text) for text in ("'2000-01-01'", "'9998-12-31'")],
]
