"""Tasks as data: what a task demands of its output files beyond the format of its track.

One YAML file for each published task of the benchmark, checked by hand against its public
configuration and prompts. Start reading at `output_format.py`. For a task that has no file here,
the brief is read once by a judge (`judge/questions/briefs.py`); without either, only the track's
format holds.
"""
