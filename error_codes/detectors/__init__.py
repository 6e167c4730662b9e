"""Detectors by what they look at.

Delivered files (`files`), their contents (`values`), failures (`failures`, `out_of_reach`), rule
breaches (`breaches`), the hand-over (`handover`), answers (`answers`), and the harness's own
taxonomy (`harness`). Each is a function from a `CodeContext` to findings, registered by
`@detector` (`../registry.py`).
"""
