"""Relays: consumer groups that publish their messages to another system's broker and then ack them."""

from mqbroker_client.contrib.relay.relays import Relay
from mqbroker_client.contrib.relay.targets import Target, TargetAway, TargetRefused

__all__ = ["Relay", "Target", "TargetAway", "TargetRefused"]
