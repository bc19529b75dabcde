"""Planted faults of the loops that work by themselves, as those of `planting`: the relay."""

from mqbroker_client.contrib.relay.relays import Relay
from mqbroker_client.core.running import Hand, Runner

from tests.simulated.loop.planting import Planted

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
)
