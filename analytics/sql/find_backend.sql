-- Find the server's process of this session, and the port of the client as that server sees it; none by a Unix socket.
SELECT pg_backend_pid() AS pid, inet_client_port() AS port
