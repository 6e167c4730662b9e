"""How far a judge can be trusted.

`against_labels` measures a judge on labelled runs, `selftest` by changes with a known effect.
`human_labels` is the label file, `label_sources` reads labels from anywhere, and `measures` has the
statistics. Start with `against_labels.py` or `selftest.py`.
"""
