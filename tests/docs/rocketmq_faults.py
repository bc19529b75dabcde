"""Faults of what docs/from-rocketmq.md claims: each is planted alone, and the test of its line has to fail.

`./mq test --all tests/docs/test_from_rocketmq.py -k fault` plants them one by one, in copies of the last commit.
"""

import subprocess
from pathlib import Path
from typing import NamedTuple

TEST_SECONDS = 300


class Fault(NamedTuple):
    """What stands in a file, once, and what stands there instead. `line` are the first words of a line of the page."""

    line: str
    path: str
    old: str
    new: str


FAULTS = (
    # Calls of the producer.
    Fault(
        "TransactionListener",
        "client/mqbroker_client/core/states.py",
        '"UNKNOW": "UNKNOWN"}',
        '"UNKNOWS": "UNKNOWN"}',
    ),
    Fault(
        "endTransaction",
        "transactions/operations/judging.py",
        'if end.decision == "UNKNOWN" or transaction.state == STATE_AFTER[end.decision]:',
        'if end.decision == "UNKNOWN" or transaction.state in STATE_AFTER.values():',
    ),
    Fault("sendOneway", "client/mqbroker_client/core/later.py", "self.lost += len(lost)", "self.lost += 0"),
    # Calls of the consumer.
    Fault(
        "priority of messages (5.4)", "delivery/receive/receives.py", "        own.reverse()\n", "        own.sort()\n"
    ),
    Fault(
        "suspendCurrentQueueTimeMillis",
        "delivery/retries/policies.py",
        "ORDERED_SECONDS = 1.0",
        "ORDERED_SECONDS = 30.0",
    ),
    # Names and properties.
    Fault(
        "ORIGIN_MESSAGE_ID",
        "delivery/receive/deliveries.py",
        '"ORIGIN_MESSAGE_ID": str(message.message_id)',
        '"ORIGIN_MESSAGE_ID": origin',
    ),
    Fault("WAIT", "store/messages/properties.py", '        "INSTANCE_ID",\n', ""),
    # Settings.
    Fault(
        "transactionCheckInterval",
        "transactions/schedule.py",
        "float(settings.TRANSACTION_CHECK_INTERVAL_SECONDS)",
        "float(settings.TRANSACTION_CHECK_INTERVAL_SECONDS + 2)",
    ),
    Fault(
        "transactionCheckMax",
        "transactions/schedule.py",
        "int(settings.TRANSACTION_CHECK_MAX)",
        "int(settings.TRANSACTION_CHECK_MAX) - 1",
    ),
    # Commands.
    Fault(
        "TransactionMetrics",
        "transactions/sql/count_half_messages.sql",
        "unnest(coalesce(h.topic_ids, ARRAY[h.topic_id]))",
        "unnest(ARRAY[coalesce(h.topic_id, h.topic_ids[1])])",
    ),
    # Errors.
    Fault(
        "The producer group wrong",
        "transactions/operations/judging.py",
        "if end.group_id is not None and transaction.producer_group_id != end.group_id:",
        "if end.group_id is not None and transaction.producer_group_id == -1:",
    ),
)


def is_caught(fault: Fault, test: str, copy: Path) -> bool:
    """Whether a test that passes in the copy of a checkout fails there with the fault in place.

    A test that is not found, or that a fault keeps from being collected, catches nothing.
    """
    file = copy / fault.path
    whole = file.read_text(encoding="utf-8")
    file.write_text(whole.replace(fault.old, fault.new), encoding="utf-8")
    command = ["./mq", "test", "-x", "-q", "-n", "1", "-p", "no:cacheprovider", f"tests/{test}"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=TEST_SECONDS * 2)
    file.write_text(whole, encoding="utf-8")
    return done.returncode == 1 and f"FAILED tests/{test}" in done.stdout
