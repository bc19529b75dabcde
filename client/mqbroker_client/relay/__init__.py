"""Relays: consumer groups that publish what they receive to the broker of another system, and ack it then."""

from mqbroker_client.relay.relays import Relay
from mqbroker_client.relay.targets import Target, TargetAway, TargetRefused

__all__ = ["Relay", "Target", "TargetAway", "TargetRefused"]
