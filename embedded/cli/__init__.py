"""The commands of ./mq."""
