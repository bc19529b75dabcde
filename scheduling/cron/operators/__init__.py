"""What operators see and do of schedules: the HTTP API, the page of the console and its actions, metrics, findings."""
