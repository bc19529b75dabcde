"""The nightly export with its reports: when it is due, the process that does it, and how it went."""
