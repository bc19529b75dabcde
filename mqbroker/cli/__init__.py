"""What `./mq` can do: one module per command."""
