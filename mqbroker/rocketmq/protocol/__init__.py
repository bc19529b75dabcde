"""The definition of RocketMQ's gRPC protocol, and the Python that `tools.protocol` makes of it."""
