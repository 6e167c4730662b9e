"""Error codes: taxonomies as data, detectors over one run, episodes of failed steps, merging with
judge tags."""
