"""The base of connections and readers: unparsed bytes, heads of requests, and data that a process shares."""
