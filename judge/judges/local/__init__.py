"""A judge that is a model on this machine.

`judge` is the judge, `likelihoods` scores its answers, `rationale` writes its short reasons.
"""
