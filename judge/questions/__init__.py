"""What a judge is asked, and what its answers mean.

`items` are the things asked about, `forms` says how each question lists them and what a reply looks
like, `replies` parses replies into verdicts, `prompts` has the prompt files. `verdict_keys` and
`question_keys` say when two questions are the same one.
"""
