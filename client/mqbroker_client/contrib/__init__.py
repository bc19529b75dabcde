"""Integrations with frameworks and tools. Each is a folder or file that no other module imports."""
