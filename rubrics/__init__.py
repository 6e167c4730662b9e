"""Rubrics as data: stages, criteria, scales and tier rules, read from YAML and frozen.

`model` defines a rubric; `document` reads YAML with the position of each value; `validate` reports
what is wrong with a file; `load` puts them together and hashes a rubric by its meaning; `bindings`
tie shipped rules and presumed values to criteria; `diff` compares two rubrics. The rubrics
themselves are the YAML files in this folder; rubric.schema.json is their published schema.

Start with `load.load_rubric` and `model.Rubric`.
"""
