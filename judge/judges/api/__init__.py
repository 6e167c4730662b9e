"""Judges behind a model's API.

Start with `judge.ApiJudge`: it makes one structured call a question. `messages` writes the prompt
(with `pictures`), `transport` makes the call (with `http_clients`), `request_options` drops what a
provider does not take, `reply_outcomes` says what a failed or cut call means, `prices` what it
costs.
"""
