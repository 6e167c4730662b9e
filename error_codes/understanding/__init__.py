"""E1, task understanding: approaches that break the brief, other targets, invented names and requirements."""
