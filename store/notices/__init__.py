"""What one process tells the others: messages that became visible, and changes of configuration."""
