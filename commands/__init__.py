"""One module a command; each imports only click until it runs."""
