"""Checks of delivered files against a track's format: S4, S5 and the caps that follow from them.

Start with `check_outputs.py`, which a scorer calls with a run. `track.py` says what a track's check
is; each track is a module with its `TRACK` (`segmentation.py`, `vqa.py`, ...) and works on a
`Submission`. Files are opened by `untrusted_files.py` and `nifti.py` alone.
"""
