"""How far a judge can be trusted: human labels, figures beside them, self-tests, and what
contradicts its verdicts."""
