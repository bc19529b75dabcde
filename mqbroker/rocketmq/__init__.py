"""RocketMQ 5's gRPC protocol: a process of its own, in which the official clients' calls reach the same operations.

The process needs the packages of the extra `rocketmq`; nothing else imports this folder's other modules.
"""

import importlib.util

NEEDED = ("grpc", "google.protobuf")


def missing() -> str | None:
    """A sentence that says which package the process lacks and how to install it; None where all are there."""
    for name in NEEDED:
        try:
            found = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            return f"The package {name} is not installed: run pip install 'mqbroker[rocketmq]'."
    return None
