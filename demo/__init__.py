"""A small cohort to try everything on, written from cohort.yaml: runs, a judge's replies, labels."""
