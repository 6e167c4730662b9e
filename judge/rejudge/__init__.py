"""What is stale and why (`staleness`), making it new (`execute`, `update`), and what changed
(`change`)."""
