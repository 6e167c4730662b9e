"""The scorecard: its data, its JSON Schema, what is shown of it, and a check of its numbers.

`fields` and `stage_results` define the data, `scorecard` adds JSON and display, `read_share` says
whether a total may be shown as a point, `presumed` fills in what nobody read, `provenance` records
who and what made the card, and `verify` recomputes every number.

Start with `fields`.
"""
