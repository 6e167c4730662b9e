"""Scorecards, labels and answers as polars frames; nothing here estimates anything.

Start with `frames` (the columns of the run frame) and `cohorts` (how scorecards fill it).
"""
