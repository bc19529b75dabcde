"""Planted faults of the loops that work by themselves, as those of `planting`: the relay, a drain and a move."""

from mqbroker_client.contrib.relay.relays import Relay
from mqbroker_client.core.running import Hand, Runner

from console.cells import dividing
from console.cells.moving import Run
from tests.simulated.loop.planting import Planted
from transactions.outboxes import messages
from transactions.outboxes.drain import Drain
from transactions.outboxes.source import Source
from transactions.outboxes.turns import Batch

WORK = (
    Planted(
        "a message is acked though the target was away",
        "relay",
        Relay,
        "_publish",
        "self._stop.wait(round_pause_seconds(failures))",
        "return",
    ),
    Planted("an absence of the target counts as a retry", "relay", Relay, "_publish", "failures += 1\n", "raise\n"),
    Planted(
        "a stop acks what the target has not taken",
        "relay",
        Relay,
        "_publish",
        'raise Redeliver(0, "the relay was stopped before the target had taken the message")',
        "return",
    ),
    Planted(
        "the relay leaves the target's connections open",
        "relay",
        Relay,
        "run",
        "self.target.close()",
        "pass",
    ),
    Planted("a settled message wakes nobody", "relay", Hand, "release", "self.changed.notify_all()", "pass"),
    Planted("what no handler has begun is not given back", "relay", Runner, "_stop", "self._give_back()", "pass"),
    Planted(
        "a row that has to wait counts as stored",
        "outbox-drain",
        messages,
        "_store_chain",
        "return Left(refused, chain[done:], {topic: problem})",
        "return Left(refused, chain[done + 1 :], {topic: problem})",
    ),
    Planted(
        "a careful turn deletes rows that have to wait",
        "outbox-drain",
        Batch,
        "_store",
        "if left.refused or left.waiting:",
        "if left.refused:",
    ),
    Planted(
        "a turn that failed is committed",
        "outbox-drain",
        Source,
        "_entered",
        'b"ROLLBACK"',
        'b"COMMIT"',
    ),
    Planted(
        "rows of one key are stored at the same time",
        "outbox-drain",
        messages,
        "chains",
        "by_key.setdefault((row.topic, row.sharding_key), [])",
        "by_key.setdefault((row.topic, str(row.seq)), [])",
    ),
    Planted(
        "a database that is away is the fault of its rows",
        "outbox-drain",
        messages,
        "_store_chain",
        "if isinstance(problem, Refusal) and problem.is_for_now:",
        "if False:",
    ),
    Planted(
        "a drain that has found no row sleeps for long",
        "outbox-drain",
        Drain,
        "_step",
        "return self._pace.wait_seconds(turn, taken.rows, hears=listener.hears, poll_seconds=listener.poll_seconds)",
        "return 15.0",
    ),
    Planted(
        "a drain that ends leaves its session open", "outbox-drain", Drain, "_connected", "await source.close()", "pass"
    ),
    Planted(
        "a move that was being undone is finished", "promotion", Run, "take_back", "self._note(steps.UNDOING)", "pass"
    ),
    Planted(
        "a standby is promoted before it has replayed all",
        "promotion",
        Run,
        "_replay",
        "or 0) <= 0, REPLAY",
        "or 0) >= 0, REPLAY",
    ),
    Planted(
        "sessions of before a fence go on", "promotion", Run, "_fence", "left = self.source.oust()\n", "left = []\n"
    ),
    Planted(
        "a move that is taken back leaves the source read-only",
        "promotion",
        dividing,
        "take_back",
        "source.change(fences.reopen(facts.database))",
        "pass",
    ),
)
