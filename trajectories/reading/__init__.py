"""Reads the files of a run into a `Run`, whichever branch of the harness wrote them.

`load` assembles the run: `layout` locates its files, `messages` converts messages to turns,
`side_files` reads the trace, the tool log, the summary and the harness report, `log_matching`
attaches log entries to turns, and `plan_files` reads or recovers the plan. `json_bytes` parses all
JSON, with limits, because the files are untrusted. `remote` reads runs at addresses such as
`s3://bucket/runs`.

Start with `load.load_run`.
"""
