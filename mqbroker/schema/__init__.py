"""The OpenAPI document: drf-spectacular's of the control plane with msgspec's of the data plane."""

from mqbroker.schema.data_plane import add_data_plane

__all__ = ["add_data_plane"]
