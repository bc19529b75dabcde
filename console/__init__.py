"""The operator's console: reads all apps below, and changes things only by calling the apps' functions."""
