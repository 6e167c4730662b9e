"""E2, data and model setup: what could not be obtained, loaded or brought to work."""
