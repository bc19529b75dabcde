"""Faults of the kinds that real faults had, each with the layer that has to see it.

`tests/simulated/test_planted_faults.py` plants each one and has its layer look. A fault that no layer sees does not
stand here: docs/proof.md names it, with what would see it.
"""

from typing import Literal, NamedTuple

Layer = Literal["model", "loop", "permutation", "test"]


class Fault(NamedTuple):
    """A text of a file and what stands there instead; `seen_by` names the scenario, model or test of the layer.

    `like` is the real fault, or the decision whose guard it takes away.
    """

    file: str
    old: str
    new: str
    layer: Layer
    seen_by: str
    like: str


def _of_statements(file: str, old: str, new: str, seen_by: str, like: str) -> Fault:
    return Fault(file, old, new, "permutation", seen_by, like)


def _of_module(file: str, old: str, new: str, seen_by: str, like: str) -> Fault:
    return Fault(file, old, new, "test", seen_by, like)


# Statements, and functions that run in one transaction: seen by interleavings on a real PostgreSQL.
PERMUTATIONS = (
    _of_statements(
        "transactions/operations/judging.py",
        '    if transaction.state in ("PREPARED", "DISCARDED") and end.decision != "UNKNOWN":\n',
        '    if transaction.state in () and end.decision != "UNKNOWN":\n',
        "discard × resolve",
        "0.1.0: an end that met a discard was refused with a state that was not so",
    ),
    _of_statements(
        "transactions/operations/repeats.py",
        "    known |= await _transactions(batch, named - known.keys())\n",
        "    known |= await _transactions(batch, named - named)\n",
        "begin × begin again, in steps",
        "0.1.0: a begin that met the commit of the same one was refused with message_id_reused",
    ),
    _of_statements(
        "transactions/sql/find_transactions.sql",
        " AND o.decision IN ('COMMIT', 'ROLLBACK')",
        "",
        "end × discard",
        "a discard is no decision (decision 4)",
    ),
    _of_statements(
        "transactions/sql/find_transactions.sql",
        "o.decision IN ('COMMIT', 'ROLLBACK')",
        "o.decision IN ('ROLLBACK')",
        "begin again × end",
        "a transaction that is ended meanwhile is found in exactly one of two tables",
    ),
    _of_statements(
        "transactions/sql/end_halves.sql",
        "    ORDER BY h.transaction_id\n    FOR UPDATE OF h\n",
        "    ORDER BY h.transaction_id\n",
        "resolve × resume, of a discarded one",
        "decision 1: the row is locked before its state counts",
    ),
    _of_statements(
        "transactions/sql/postpone_checks.sql",
        "    FOR UPDATE OF h\n",
        "",
        "check × discard",
        "0.1.0: a check that met a discard changed it",
    ),
    _of_statements(
        "transactions/sql/discard_halves.sql",
        "    FOR UPDATE\n",
        "",
        "discard × discard",
        "two workers discard what both have found",
    ),
    _of_statements(
        "transactions/sql/resume_halves.sql",
        " AND discarded_at IS NOT NULL",
        "",
        "discard × resume",
        "0.1.0: a resume that met a discard",
    ),
    _of_statements(
        "transactions/sql/end_free_halves_of_one.sql",
        "WHEN h.discarded_at IS NOT NULL THEN false",
        "WHEN false THEN false",
        "end × discard",
        "decision 4: a discarded half stays, until an operator decides",
    ),
    _of_statements(
        "delivery/sql/hand_out.sql",
        "greatest(newest.next_offset, f.min_offset, 0) AS next_offset",
        "greatest(f.min_offset, 0) AS next_offset",
        "receive × receive",
        "decision 3: a reader goes on where its newest move ends",
    ),
    _of_statements(
        "delivery/sql/hand_out_by_turns.sql",
        "least(c.in_flight - c.counted,",
        "least(c.in_flight,",
        "receive × receive, of messages in flight",
        "decision 67: deliveries in flight are counted from the receipts of the value",
    ),
    _of_statements(
        "delivery/sql/hand_out_by_turns.sql",
        "floor(c.size - c.due_seconds * c.per_second)",
        "floor(c.size)",
        "receive × receive, at a rate",
        "decision 67: the rate is one time per value",
    ),
    _of_statements(
        "delivery/sql/ack_receipts.sql",
        " AND r.expires_at > now()) IS TRUE",
        ") IS TRUE",
        "ack × expire × time",
        "an ack that comes too late takes a delivery back",
    ),
    _of_statements(
        "delivery/sql/ack_forwards.sql",
        "        FOR UPDATE SKIP LOCKED\n    ) AS f ON (",
        "    ) AS f ON (",
        "forward × ack, in a bundle",
        "a message is sent, and its delivery stays: the bundle has changed before the ack",
    ),
    _of_statements(
        "store/sql/skip_stored.sql",
        "nullif(current_setting('mq.left_out', true), '')",
        "nullif(current_setting('mq.none', true), '')",
        "forward × ack",
        "a batch sends the message of a delivery that is acked already",
    ),
    _of_statements(
        "delivery/sql/lock_bundles.sql",
        "    FOR UPDATE\n",
        "",
        "ack × nack, in a bundle",
        "a bundle that is read, then taken apart, brings back what was acked meanwhile",
    ),
    _of_statements(
        "delivery/sql/extend_receipts.sql",
        " AND r.expires_at > now()) IS TRUE",
        ") IS TRUE",
        "extend × expire × time",
        "an extension that comes too late revives a delivery",
    ),
    _of_statements(
        "delivery/sql/take_expired.sql",
        " AND r.expires_at <= now()",
        "",
        "ack × expire × time",
        "a message is handed out again while its consumer works",
    ),
    _of_statements(
        "store/sql/try_lock_readers.sql",
        "pg_try_advisory_xact_lock(k.key) AS taken",
        "true AS taken",
        "release × recall, at a level",
        "decision 3: progress moves under its lock",
    ),
    _of_statements(
        "store/sql/take_locks.sql",
        "SELECT pg_advisory_xact_lock(k.key)",
        "SELECT NULL::void AS pg_advisory_xact_lock",
        "release × recall, at a level",
        "a recall that is answered, and a message that is delivered all the same",
    ),
    _of_statements(
        "transactions/outboxes/sql/take_turn.sql",
        "    FOR UPDATE SKIP LOCKED\n",
        "",
        "drain × drain",
        "Unreleased: the turn is a row lock",
    ),
    _of_statements(
        "transactions/outboxes/sql/take_small.sql",
        "w.bytes <= %(max_bytes)s AND EXISTS (SELECT FROM turn)",
        "w.bytes <= %(max_bytes)s",
        "small drain × drain",
        "decision 53: one process drains at a time",
    ),
    _of_statements(
        "docs/sql.md",
        "    PERFORM mqbroker_outbox_lock(NEW.topic, NEW.sharding_key);\n",
        "    NULL;\n",
        "insert × insert, of one key",
        "decision 53: rows of a key are numbered in the order of their commits",
    ),
    _of_statements(
        "docs/sql.md",
        "    IF NOT is_used THEN\n",
        "    IF true THEN\n",
        "insert × slots",
        "a partition is emptied that holds a row",
    ),
    _of_statements(
        "transactions/sql/end_free_halves_of_one.sql",
        "        AND EXISTS (SELECT FROM segment AS s WHERE s.state = 'open' AND s.id = %(segment_id)b::integer)\n",
        "",
        "roll × end",
        "decision 2: nothing is added to a segment behind its end",
    ),
    _of_statements(
        "store/commit/reappend.py",
        "position[0] >= batch.segment_id - 1",
        "position[0] >= batch.segment_id - 2",
        "roll × end",
        "decision 2: an entry points into its own segment or the one before",
    ),
    _of_statements(
        "store/sql/enqueue_first_entries.sql",
        "                ORDER BY c.queue_offset DESC\n",
        "                ORDER BY c.queue_offset\n",
        "roll × send",
        "offsets of a queue go on behind a roll",
    ),
    _of_statements(
        "store/sql/hold_log.sql",
        "pg_advisory_xact_lock(%(key)s) AS held",
        "(%(key)s::bigint IS NULL)::text AS held",
        "roll × end",
        "decision 2: a roll waits for the writers",
    ),
    _of_statements(
        "store/sql/oust_sessions.sql",
        "a.backend_type = 'client backend'",
        "a.backend_type = 'no backend'",
        "purge × end, behind a split",
        "a session of before a fence writes behind it",
    ),
)

# What one test holds by itself.
TESTS = (
    _of_module(
        "store/db/ttl_cache.py",
        "            if self._look_ups.get(key) is running:\n                self._remember",
        "            if running is not None:\n                self._remember",
        "tests/store/test_ttl_cache.py::test_what_was_looked_up_before_a_change_is_not_remembered",
        "decision 35: a change holds from its answer on",
    ),
    _of_module(
        "store/db/ttl_cache.py",
        "self._clock() if self._since_answer else began",
        "self._clock()",
        "tests/store/test_ttl_cache.py::test_the_time_of_a_value_counts_from_the_beginning_of_its_look_up",
        "a look-up that took long was believed for as long again",
    ),
    _of_module(
        "store/db/ttl_cache.py",
        "            self._values.pop(key, None)\n            return\n",
        "            return\n",
        "tests/store/test_ttl_cache.py::test_a_value_that_is_gone_when_it_is_looked_up_again_is_dropped",
        "0.1.0: a first use beside a delete of its group",
    ),
    _of_module(
        "store/process/shares.py",
        "most * 5 // 8",
        "most",
        "tests/store/test_shares.py::test_a_key_that_takes_all_it_may_leaves_room_to_another_one",
        "0.1.0: slow readers took the room of others",
    ),
    _of_module(
        "store/process/shares.py",
        "        self.taken -= places\n",
        "        self.taken -= 1\n",
        "tests/store/test_shares.py::test_no_key_has_more_than_five_eighths_and_all_together_no_more_than_there_are",
        "room that is never given back",
    ),
    _of_module(
        "store/process/pacing.py",
        "        await asyncio.sleep(min(time.perf_counter() - began, MAX_PAUSE_SECONDS))\n",
        "        del began\n",
        "tests/store/test_pacing.py::test_other_work_runs_between_any_two_steps_of_large_work",
        "0.1.0: a caller at full speed kept all others waiting",
    ),
    _of_module(
        "store/process/runtime.py",
        "    chosen = _here.get() or _only\n",
        "    chosen = _here.get() or _control\n",
        "tests/store/test_runtime.py::test_work_that_has_chosen_no_cell_is_an_error_where_there_are_several",
        "a guessed cell",
    ),
    _of_module(
        "store/messages/strict_json.py",
        '    if has_escapes and b"\\\\u0022" in body:\n        return False\n',
        "",
        "tests/store/test_strict_json.py::test_a_name_that_stands_twice_is_found",
        "a name that stands twice is not seen behind an escaped quote",
    ),
    _of_module(
        "delivery/filters/predicates.py",
        "        return found is not None and (found in values) is wanted\n",
        "        return (found in values) is wanted\n",
        "tests/delivery_filters/test_filter_law.py::test_a_filter_takes_what_three_valued_logic_finds_true",
        "a filter that takes an unknown value for another one",
    ),
)

FAULTS = (*PERMUTATIONS, *TESTS)
