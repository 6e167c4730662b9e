"""What each turn of a run does, which stage it belongs to, and what failed.

Start with `segment.py` (turns to stages), whose signals `stage_signals.py` derives from the facts
of `features.py`. The facts come from what was executed (`executed_code.py`): shell in
`shell_facts.py`, Python in `python_reader.py`. `failures.py` reads what the environment answered.
"""
