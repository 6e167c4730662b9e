"""A static site of runs and their scorecards: the browser's views as pages, for people who were not
there."""
