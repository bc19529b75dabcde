"""RocketMQ 5's gRPC protocol: a process of its own, in which the official clients' calls reach the same operations."""
