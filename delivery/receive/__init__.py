"""Receive: chooses a group's next messages, hides them and gives them out."""
