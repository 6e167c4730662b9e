"""Estimates with intervals from run frames: pure functions from tables to tables.

Start with `interval_estimates` (what an estimate is), `run_arrays` (a run frame as arrays) and
`jackknife` (errors over tasks and repeats). Then by subject:

- leaderboards: `agent_scores` (scores of cells, tasks, tracks), `ranking`, `rasch`,
  `repeated_success` (pass^k, first breaks), `comparison` (two sides), `who_ran`,
  `benchmark_ratings`;
- error codes: `overlap_weighting` (the estimator), `effects` (its tables), `effect_diagnostics`,
  `alternative_models`, `heterogeneity`, `score_by_code_count`, `overall_parts`;
- human labels: `raters` (agreement), `corrected_means`, `corrected_effects`, `label_sampling`;
- planning: `score_variance`, `power_analysis`;
- tables: `descriptive`, `score_checks`.

docs/statistics.md says why each estimator was chosen and how well its intervals cover.
"""
