"""Users of the console: accounts with their role, passwords, sign-in and its attempts, and who signs a change."""
