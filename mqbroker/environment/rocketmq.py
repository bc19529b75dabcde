"""Settings of the process that serves RocketMQ 5's clients."""

from mqbroker.environment import env

ROCKETMQ_SERVER = env.choice(
    "ROCKETMQ_SERVER",
    "auto",
    "The gRPC server for RocketMQ's clients. auto: grpcio's. native is that of the extra rocketmq-native: it takes a "
    "third of the CPU, and messages of any length into memory before their key is known. TLS is always grpcio's.",
    ("auto", "native", "grpcio"),
)
ROCKETMQ_CONNECTIONS = env.whole(
    "ROCKETMQ_CONNECTIONS",
    2048,
    "Connections of a port for RocketMQ's clients; three quarters of them from one address, or CONNECTIONS_PER_ADDRESS "
    "where that is less. A client has one, of some 15 kB.",
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
    "ROCKETMQ_TLS_PORT", 8082, "The port with TLS for RocketMQ's clients, beside the plain one.", 1, 65535
)
