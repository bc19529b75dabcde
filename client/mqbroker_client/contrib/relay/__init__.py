"""Relays: consumer groups that publish their messages to the broker of another system, and then ack them."""

from mqbroker_client.contrib.relay.relays import Relay
from mqbroker_client.contrib.relay.targets import Target, TargetAway, TargetRefused

__all__ = ["Relay", "Target", "TargetAway", "TargetRefused"]
