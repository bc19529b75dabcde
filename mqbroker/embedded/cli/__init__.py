"""The commands of ./mq, a module for each, and what they share."""
