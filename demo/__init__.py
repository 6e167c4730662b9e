"""A small cohort to try everything on, written from cohort.yaml: runs, replies, labels."""
