"""A judge that is a model on this machine (`judge`), and its short reasons (`rationale`)."""
