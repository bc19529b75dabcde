"""The OpenAPI document: the control plane from drf-spectacular, the data plane from msgspec, and examples."""

from mqbroker.schema.data_plane import add_data_plane
from mqbroker.schema.examples import add_examples

__all__ = ["add_data_plane", "add_examples"]
