"""The definition of RocketMQ's gRPC protocol, and the Python that `tools.generate.protocol` makes of it."""
