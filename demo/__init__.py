"""A small cohort to try everything on: written from cohort.yaml, with answers to a reader's
questions and labels."""
