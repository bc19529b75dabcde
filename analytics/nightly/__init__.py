"""The nightly export with its reports: when it is due, the process that runs it, and its outcome."""
