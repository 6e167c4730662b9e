"""E5, deliverables and submission: what is wrong with the delivered files."""
