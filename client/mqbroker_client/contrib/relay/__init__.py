"""Relays: consumer groups that publish what they receive to the broker of another system, and ack it then."""

from mqbroker_client.contrib.relay.relays import Relay
from mqbroker_client.contrib.relay.targets import Target, TargetAway, TargetRefused

__all__ = ["Relay", "Target", "TargetAway", "TargetRefused"]
