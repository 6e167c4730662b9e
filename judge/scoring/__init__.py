"""How the numbers of a scorecard follow from verdicts and checks.

`base` has the protocol, `Scoring`; `paper` follows the benchmark's text and `harness` its public
harness; `formulas` are the pure functions that both use. `scoring_rules` lists where the two differ
in reading outputs, and `workspace` is what the harness's vqa branch reads beside the answers.

Start with `base.Scoring`.
"""
