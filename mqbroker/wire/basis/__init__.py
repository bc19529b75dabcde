"""What connections and their readers stand on: bytes that are not parsed yet, heads, what a process shares."""
