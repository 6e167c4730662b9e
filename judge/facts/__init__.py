"""What is known about a run without a judge, and what follows for a judge's words.

`run_facts` composes the facts that a judge is shown, from the checks (`check_facts`), the delivered
files (`file_facts`) and the detectors. `contradictions` finds verdicts that facts refute, and
`diagnosis` merges the detectors' findings with a judge's readings.

Start with `run_facts`.
"""
