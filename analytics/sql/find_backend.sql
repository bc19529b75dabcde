-- Find the server's process of this session, and the client's port as the server sees it, which is null for a Unix
-- socket.
-- Row: The server's process of a session, and the port of its client; None by a Unix socket.
-- Null: port.
SELECT pg_backend_pid() AS pid, inet_client_port() AS port
