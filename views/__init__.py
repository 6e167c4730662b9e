"""What is shown of runs and scorecards, whatever draws it: no Textual and no HTML.

Begin with `collection.py` (the runs), `run_columns.py` and `run_filter.py` (the table),
`scorecard_panel.py` (a scorecard beside its transcript) and `transcript_layout.py` (the turns).
What is said of a scorecard comes from `judge/card/view.py`.
"""
