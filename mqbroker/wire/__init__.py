"""HTTP/1.1 on the wire: connections, one request and its answer, and the way to an ASGI application."""
