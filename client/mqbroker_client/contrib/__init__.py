"""Frameworks and tools that the client works with, each in a folder or file that nothing else imports."""
