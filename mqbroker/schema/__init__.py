"""The OpenAPI document: drf-spectacular's of the control plane with msgspec's of the data plane, and examples."""

from mqbroker.schema.data_plane import add_data_plane
from mqbroker.schema.examples import add_examples

__all__ = ["add_data_plane", "add_examples"]
