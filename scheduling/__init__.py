"""When a message becomes visible: now, at a delay level or at a time; and the release of what is due."""
