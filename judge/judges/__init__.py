"""The judges: functions from a question about a run to verdicts (`judge.base.Judge`).

`rules` decides by facts and is the default; `api` asks a model behind an API, `local` a model on
this machine; `replay` plays recorded answers back. `panel` makes one judge of several, `limits`
puts any judge under limits of concurrency and cost.
"""
