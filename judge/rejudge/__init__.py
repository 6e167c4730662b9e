"""Rejudging: which verdicts are stale and why, judging these again, and what that changed.

`staleness` plans, `execute` makes the planned calls, `update` also renews the scorecards, and
`score_change` splits a changed score by cause. Start with `staleness.plan_rejudge`.
"""
