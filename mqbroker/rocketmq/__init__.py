"""RocketMQ 5's gRPC protocol: a separate process, in which calls of the official clients run the same operations as
HTTP.
"""
