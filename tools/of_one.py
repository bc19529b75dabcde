"""Writes the statements for one operation from the statements for many, by replacing each array with its only element.

Run it after a change of a statement in STATEMENTS. With --check it writes nothing, and fails if a statement differs
from the one that its origin gives. A statement for many is slow for one row: each array access, each function in FROM
and each node of a plan takes some microseconds, for which a lone caller waits.

Each rule of RULES matches exact SQL, and leaves other SQL unchanged; an array that is left is an error. A batch of one
operation has one row, so no rule changes the effect of the statement.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STATEMENTS = (
    "transactions/sql/begin_halves.sql",
    "store/sql/append_numbered.sql",
    "transactions/sql/end_free_halves.sql",
)
HEAD = (
    "-- As `{name}`, for one operation. Generated from it by tools/of_one.py: change that one, then run the script.\n"
)

PARAMETER = r"(%\([a-z_]+\)b::[a-z ]+?)"
REGISTER = r"(nullif\(current_setting\('[a-z.]+', true\), ''\)::bigint \[\])"
BISECTED = r"width_bucket\(h\.transaction_id, %\(transaction_id\)b::uuid \[\]\)"
# Each with what it stands for in a batch of one, in their order.
RULES = (
    # The element of a number, and the number itself.
    (rf"\({PARAMETER} \[\]\)\[(?:[a-z]\.number|{BISECTED})\]", r"\1"),
    (rf"[ ]*{BISECTED} AS number,\n", ""),
    (r", [a-z]\.number(?=,)", ""),
    # One of the elements.
    (rf"= any\({PARAMETER} \[\]\)", r"= \1"),
    # The elements as rows: one row.
    (rf"unnest\({PARAMETER} \[\]\) WITH ORDINALITY AS ([a-z]) \(([a-z_]+), number\)", r"(SELECT \1 AS \3) AS \2"),
    (rf"unnest\({REGISTER}\) WITH ORDINALITY AS ([a-z]) \(([a-z_]+), number\)", r"(SELECT (\1)[1] AS \3) AS \2"),
    # The queues that are locked may be several, and one of them is looked for once or twice: they stay rows. The index
    # of a queue is its number, and its offset is that of the row with the number.
    (
        r"l\.queues,\s+array\(\s+SELECT (\(.*?\n            \))\s+FROM unnest\(l\.queues\) AS q \(queue\)\s+\)"
        rf" AS offsets\s+FROM \(SELECT {REGISTER} AS queues OFFSET 0\) AS l",
        r"q.queue,\n        \1 AS queue_offset\n    FROM unnest(\2) AS q (queue)",
    ),
    (r"array_position\(\(SELECT t\.queues FROM tail AS t\), ([^()]+)\)", r"\1"),
    (
        r"\(SELECT t\.offsets FROM tail AS t\)\[\s*([^][]+?)\s*\]",
        r"(SELECT t.queue_offset FROM tail AS t WHERE t.queue = \1)",
    ),
    # The number of a row, and what is made of all rows. Without a row there is none in the answer.
    (r"row_number\(\) OVER \([^()]*\)", "1"),
    (r"string_agg\(\s*((?:[^,]|,(?!\s*''::bytea))*),\s*''::bytea\s*\)", r"\1"),
    (
        r"coalesce\(\s*string_agg\(\s*(concat_ws\((?:[^()]|\([^()]*\))*\)),\s*','\s*\)"
        r" FILTER \(WHERE ([^()]+)\),\s*''\s*\)",
        r"CASE WHEN \2 THEN \1 ELSE '' END",
    ),
)
# What no statement for one operation may hold.
LEFT = re.compile(rf"{PARAMETER} \[\]|\bplace\b|\b[a-z]\.(?:offsets|queues)\b|string_agg|row_number")


class NotDerived(Exception):
    """A statement has SQL that no rule matches: change the statement, or add a rule."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a statement is out of step")
    is_check = parser.parse_args().check
    differing = [origin for origin in STATEMENTS if is_out_of_step(ROOT / origin)]
    for origin in differing:
        path = path_of(ROOT / origin)
        if not is_check:
            path.write_text(of_one(ROOT / origin), encoding="utf-8")
            print(f"{path.relative_to(ROOT)} is written")
        else:
            print(f"{path.relative_to(ROOT)} is not what {origin} gives.")
    if differing and is_check:
        print(f"Change the statement for many, not the generated one, and run: {sys.executable} {sys.argv[0]}")
    return 1 if differing and is_check else 0


def path_of(origin: Path) -> Path:
    return origin.with_stem(f"{origin.stem}_of_one")


def is_out_of_step(origin: Path) -> bool:
    path = path_of(origin)
    return not path.exists() or path.read_text(encoding="utf-8") != of_one(origin)


def of_one(origin: Path) -> str:
    """The text of the statement for one operation. Raises NotDerived."""
    lines = origin.read_text(encoding="utf-8").splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith("--"))
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text, flags=re.DOTALL)
    if left := LEFT.search(text):
        raise NotDerived(f"{origin.name}: no rule of tools/of_one.py knows what to do with {left[0]!r}.")
    return HEAD.format(name=origin.stem) + text


if __name__ == "__main__":
    sys.exit(main())
