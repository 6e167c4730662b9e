"""What a reader is shown of a run: facts, brief, plan and all turns as one text, and the check of quotes from it."""
