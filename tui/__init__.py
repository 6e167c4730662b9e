"""The browser in the terminal: draws what `views/` says and handles keys.

Begin with `app.py`, which opens the screens: `runs_screen.py` lists runs, `run_screen.py` shows
one, `compare_screen.py` two, and `label_screen.py` takes labels. Text of runs reaches the terminal
only through `safe_text.py`.
"""
