"""What went wrong in a run, as codes of two taxonomies, without opening files or asking a judge.

`taxonomy` reads the codes (taxonomies.yaml). `detectors/` has functions from a `context` to
findings, listed in the `registry`; `fired_codes` runs them. `episodes` groups failures into failed
steps, `trace_facts` states what they prove, and `merge` combines findings with a judge's readings.

Start with `registry` and any module of `detectors/`.
"""
