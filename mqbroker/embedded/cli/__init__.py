"""The commands of ./mq, one module each, and code that they share."""
