"""What a judge is asked: items, the form of a reply, its parser, and the keys that verdicts go by."""
