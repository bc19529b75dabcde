"""Settings of the process that serves RocketMQ 5's clients."""

from mqbroker.environment import env

ROCKETMQ_SERVER = env.choice(
    "ROCKETMQ_SERVER",
    "auto",
    "The gRPC server for RocketMQ's clients. auto: grpcio. native: the server of the extra rocketmq-native, which "
    "takes a third of the CPU, but reads messages of any length into memory before it knows their key. TLS is always"
    " served by grpcio.",
    ("auto", "native", "grpcio"),
)
ROCKETMQ_CONNECTIONS = env.whole(
    "ROCKETMQ_CONNECTIONS",
    2048,
    "The most connections at a port for RocketMQ's clients; from one address at most three quarters of them, or "
    "CONNECTIONS_PER_ADDRESS if that is less. A client has one connection, of some 15 kB.",
    1,
    65536,
)
ROCKETMQ_TLS_CERTIFICATE = env.text(
    "ROCKETMQ_TLS_CERTIFICATE",
    "",
    "File with the certificate chain (PEM) of a second port for RocketMQ's clients, with TLS; empty: none.",
)
ROCKETMQ_TLS_KEY = env.text("ROCKETMQ_TLS_KEY", "", "File with the private key (PEM) of ROCKETMQ_TLS_CERTIFICATE.")
ROCKETMQ_TLS_PORT = env.whole(
    "ROCKETMQ_TLS_PORT", 8082, "The port with TLS for RocketMQ's clients, besides the port without TLS.", 1, 65535
)
