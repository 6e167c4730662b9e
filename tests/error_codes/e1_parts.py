"""Cases of E1, parts of the outputs ascribed to a requirement; and of E5, open answers in other words than wanted. Rows as in `TABLE`."""

from __future__ import annotations

from tiny_runs import facts, say, submit

REPORT = {
    "track": "report_generation",
    "task": "renal-report-task",
    "extra": "OUTPUT. /workspace/agents_outputs/<study>/report.txt, 40 to 8000 characters, findings and impression. Metric: BLEU and findings F1.",
}
BOXES = {
    "track": "detection",
    "task": "bccd-det-task",
    "extra": 'OUTPUT. /workspace/agents_outputs/<id>/prediction.json: {"boxes": [{"class", "x1", "y1", "x2", "y2", "score"}]}. Metric: mAP@0.5.',
}
TABLE_OUT = {
    "track": "classification",
    "task": "nct-crc-cls-task",
    "extra": "OUTPUT. /workspace/agents_outputs/predictions.csv with header patient_id,label. Metric: accuracy.",
}
S = "S1 S4 S5 S5"
HEAD = "import glob, json, os\nnet = load('/data/public/models/net.pt')\nfor k in sorted(os.listdir('/data/public')):\n    f = net(read(k))\n"
TEXT = "    open(f'/workspace/agents_outputs/{k}/report.txt', 'w').write(t)\n    print(k, len(t))\n"
IDS = "\n".join(f"st_{i:02d} {300 + i}" for i in range(1, 9))


def parts(words, code, card="net.pt: findings net", close="Submitting."):
    return [
        say("Card.", "cat /data/public/models/CARD.md", card, language="bash"),
        say(words, HEAD + code, IDS),
        say("Check.", "ls /workspace/agents_outputs | wc -l", "8", language="bash"),
        submit(close),
    ]


# Written before they were run.
PARTS = [
    ("heading-for-the-scorer", parts("The scoring script expects a LATERALITY line in each report, so it goes first.", "    t = f'LATERALITY: {side(f)}\\nFINDINGS: {f}\\nIMPRESSION: {g(f)}\\n'\n" + TEXT), S, 1, REPORT),
    ("field-of-the-schema", parts("The evaluation requires a `severity` field in every box.", "    b = [{'class': c, 'x1': a, 'y1': b, 'x2': d, 'y2': e, 'score': s, 'severity': round(3 * s)} for c, a, b, d, e, s in f]\n    json.dump({'boxes': b}, open(f'/workspace/agents_outputs/{k}/prediction.json', 'w'))\n    print(k, len(b))\n"), S, 1, BOXES),
    ("column-of-the-format", parts("According to the submission rules the table has to hold a certainty column.", "    rows.append(f'{k},{L[f.argmax()]},{f.max():.2f}')\nwith open('/workspace/agents_outputs/predictions.csv', 'w') as o:\n    o.write('patient_id,label,certainty\\n')\n    o.write('\\n'.join(rows))\n"), S, 1, TABLE_OUT),
    ("grade-of-a-guideline", parts("Paediatric urology guidelines demand an SFU grade for each kidney.", "    t = 'FINDINGS: ' + ' '.join(f) + f' SFU grade {sfu(f)}. IMPRESSION: ' + g(f)\n" + TEXT), S, 1, REPORT),
    ("own-addition", parts("I put a COMPARISON line at the top for the readers; nobody asks for it.", "    t = f'COMPARISON: none.\\nFINDINGS: {f}\\nIMPRESSION: {g(f)}\\n'\n" + TEXT), S, 0, REPORT),
    ("the-card-asks", parts("The reference layout of the card requires TECHNIQUE first.", "    t = f'TECHNIQUE: ultrasound.\\nFINDINGS: {f}\\nIMPRESSION: {g(f)}\\n'\n" + TEXT, "Reports open with a technique line, then findings, then impression."), S, 0, REPORT),
    ("sections-of-the-brief", parts("The brief asks for findings and an IMPRESSION, the metric reads both.", "    t = f'FINDINGS: {f}\\nIMPRESSION: {g(f)}\\n'\n" + TEXT), S, 0, REPORT),
    ("a-resampling-filter", parts("Resizing with LANCZOS is standard, as the reference implementation of the format does it.", "    f = f.resize((64, 64), 'LANCZOS')\n    t = f'FINDINGS: {f}\\nIMPRESSION: {g(f)}\\n'\n" + TEXT), S, 0, REPORT),
    ("a-note-in-the-plan", parts("The scorer reads the boxes only; Postprocessing follows the standard of the output format.", "    json.dump({'boxes': f}, open(f'/workspace/agents_outputs/{k}/prediction.json', 'w'))\nopen('/workspace/plan/plan.md', 'a').write('Postprocessing: none\\n')\n"), S, 0, BOXES),
    ("said-at-the-end", parts("Reports now.", "    t = f'FINDINGS: {f}\\nUROSCORE {u(f)}\\nIMPRESSION: {g(f)}\\n'\n" + TEXT, close="All reports carry the UROSCORE that the reference standard requires."), S, 1, REPORT),
    ("a-format-line", [say("The metric is computed by CheXbert, and the format requires an IMPRESSION line, so I append it.", "open('/workspace/plan/plan.md','w').write('# Plan')", "ok"), *parts("Run.", "    t = f(x) + 'IMPRESSION: none'\n" + TEXT, "ok")[1:]], S, 1, {"track": "report_generation", "task": "iu-xray-report-task"}),
]  # fmt: skip
VOLUMES = {"extra": "OUTPUT. /workspace/agents_outputs/<id>/lesion.nii.gz. Metric: mean Dice."}
GRID = "    y = resample_to_output(y, {})\n    nib.save(y, f'/workspace/agents_outputs/{{k}}/lesion.nii.gz')\n    print(k, y.shape)\n"
RESAMPLED = [
    ("to-a-scorer's-grid", parts("The scorer expects volumes of 2 mm voxels.", GRID.format("(2.0, 2.0, 2.0)")), S, 1, VOLUMES),
    ("to-the-grid-of-the-card", parts("The scorer expects volumes of 2 mm voxels.", GRID.format("(2.0, 2.0, 2.0)"), "Reference masks have 2 mm voxels."), S, 0, VOLUMES),
]  # fmt: skip


def answered(*given, shown="ok", extra="", log=""):
    """A vqa run with the given (answer, model's words) pairs as its open answers."""
    known = facts(answers=tuple(
        {"question_id": f"n{i}", "predicted_answer": a, "raw_model_output": raw, "model_name": "m", "runtime_s": 1}
        for i, (a, raw) in enumerate(given, 1)))  # fmt: skip
    turns = [
        say("Look.", "cat /data/public/*.json", shown, language="bash"),
        say(
            "All.",
            "import json\nm = load('/data/public/models/net.pt')\nfor q in qs:\n    json.dump(ask(m, q), open(f'/workspace/agents_outputs/{q}/answer.json', 'w'))\n    print(q)\n",
            log or "\n".join(f"n{i} done" for i in range(1, 9)),
        ),
        submit(),
    ]
    return [turns, "S1 S4 S5", {"track": "vqa", "task": "x-vqa-task", "extra": extra, "known": known}]


def row(name, count, *given, **more):
    turns, stages, options = answered(*given, **more)
    return (name, turns, stages, count, options)


SIDES = [("L", "left lung"), ("R", "right lung"), ("L", "left lung"), ("yes", "yes")]
WORDS = [
    row("letters-for-sides", 1, *SIDES, extra="Open questions: answer with one of left, right, both; yes or no."),
    row(
        "synonyms",
        1,
        ("present", "There is a nodule."),
        ("absent", "No nodule."),
        ("3", "three"),
        extra="Answer presence questions with yes or no.",
    ),
    row(
        "a-key-file",
        1,
        ("high", "signal is high"),
        ("low", "signal is low"),
        ("axial", "plane axial"),
        shown='{"signal": ["hyperintense", "hypointense"], "plane": ["axial", "coronal"]}',
    ),
    row(
        "sentences-for-words",
        1,
        ("The liver is shown.", "liver"),
        ("It is the spleen.", "spleen"),
        extra="predicted_answer of open questions is one word.",
    ),
    row(
        "as-the-brief-says",
        0,
        ("left", "left lung"),
        ("yes", "yes"),
        ("no", "no"),
        ("liver", "the liver"),
        ("spleen", "spleen"),
        extra="Open questions: answer with one of left, right, both; yes or no.",
    ),
    row(
        "free-answers",
        0,
        ("liver", "The organ is the liver."),
        ("chest", "plane of the chest"),
        ("two", "two"),
        ("pleural effusion", "effusion"),
        shown='{"question_type": ["open", "closed"], "source": {"siteA": 0.5, "siteB": 0.5}}',
        extra="Questions are open or closed. Answers to open questions are short phrases, such as the name of an organ or a number.",
    ),
]
ROWS = {"other_words_delivered": WORDS, "invented_part": PARTS, "invented_requirement": RESAMPLED}
