"""Names of topics, groups and namespaces: their rules, and the topics and groups that a process caches by name."""
