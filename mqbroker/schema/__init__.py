"""The OpenAPI document: what drf-spectacular tells of the control plane, and what msgspec tells of the data plane."""

from mqbroker.schema.data_plane import add_data_plane

__all__ = ["add_data_plane"]
