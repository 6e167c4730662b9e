"""Detectors by what they look at: delivered files, failures, breaches, the hand-over, values,
answers, the harness."""
