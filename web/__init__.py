"""The static site of `ambjudge site`: a page for each run, a table, a comparison, the report.

Begin with `site.py`; `run_page.py` says what the page of a run shows, `page_turns.py` draws its
turns, and the templates and scripts do the rest in the reader's browser.
"""
