"""Judges behind a model's API: one structured call a question (`judge`), how it is made
(`transport`), its price, its pictures."""
