"""Scoring in several processes: `workers` on this machine, `ray_workers` on a Ray cluster.

Start with `workers.WorkerPool`, which stands in for a scorer.
"""
