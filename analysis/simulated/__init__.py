"""Cohorts with known true effects: `simulation` draws them, `simulated_cards` makes scorecards."""
