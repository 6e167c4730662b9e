"""From a run and a rubric to a scorecard.

`engine` prepares a run, asks a judge and assembles the card. `session` does so for many runs, with
a store. `checks/` opens the outputs, `facts/` states what is proven, `questions/` puts criteria,
codes and stages as questions, and `judges/` answers them: rules, models, panels. `scoring/` turns
verdicts and checks into numbers, and `card/` is what comes out. Around it: `store/` keeps verdicts
and scorecards, `rejudge/` brings them up to date, `provider_batch/` and `spread/` run elsewhere,
and `trust/` measures judges.

Start with `base` (what a judge is), then `engine`.
"""
