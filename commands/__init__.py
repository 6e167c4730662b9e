"""The commands of the command line, one module each, imported only when they are run.

`registry` lists them. `options` has the options that several share, `grouped_help` draws their
help. `sessions` turns flags and settings into judge, store and scoring options; `campaign` carries
out `score`, `rejudge` and `ask`; `cohort_input` reads scorecards for the commands of the analysis.
"""
