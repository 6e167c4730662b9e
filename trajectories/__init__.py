"""Everything known of a run before anybody judges it.

`models` defines a run as frozen values. `reading/` reads files into those models, `importers/`
converts the formats of other harnesses, `turns/` assigns stages to turns, and `record/` renders the
text that a judge is shown. Nothing outside this package knows a file format.

Start with `models.Run` and `reading.load.load_run`.
"""
