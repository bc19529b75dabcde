"""The basis of connections and readers: bytes that are not parsed yet, heads of requests, what a process shares."""
