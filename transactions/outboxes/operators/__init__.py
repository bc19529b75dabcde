"""What operators see and do of outboxes: the HTTP API, the page of the console and its actions, metrics, findings."""
