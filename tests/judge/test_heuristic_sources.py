"""Where shown values, candidates and images come from: inputs in tables, candidates in any list, views run one by one.

Each table holds ways in which the same evidence looks, and the nearest look-alikes, which must not count.
"""

import json

import pytest
from ambjudge.judge.heuristic.alternatives import weighed
from ambjudge.judge.heuristic.handed import writes_each
from ambjudge.judge.heuristic.inputs import shows_input
from ambjudge.judge.heuristic.manifest import logs_listed
from ambjudge.judge.heuristic.names import candidates
from ambjudge.judge.heuristic.programs import without_searches
from ambjudge.judge.heuristic.report_generation import all_images, pilot_check
from ambjudge.judge.heuristic.report_pilot import pilot_opened
from ambjudge.judge.heuristic.shown import Shown
from ambjudge.judge.heuristic.view import FORWARD, View
from ambjudge.judge.heuristic.vqa import schema_understood
from ambjudge.judge.heuristic.zoo import planned_calls
from ambjudge.trajectories.load import load_run

IDS = [f"KX-{i}" for i in range(1, 9)]
ALL = "\n".join(f"{i} ok" for i in IDS)


def view_of(folder, *steps, text="", track="report_generation"):
    """A run of (code, output) pairs in bash; `text` becomes its plan."""
    messages = [{"role": "user", "content": "Begin."}]
    planned = ((f"cat > /workspace/plan/plan.md <<'EOF'\n{text}\nEOF\n", ""),) if text else ()
    for number, (code, out) in enumerate((("ls /data/public", "\n".join(IDS)), *planned, *steps)):
        call = {"name": "execute_code", "arguments": json.dumps({"language": "bash", "code": code})}
        messages += [
            {"role": "assistant", "content": "Next.", "tool_calls": [{"id": str(number), "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": str(number), "content": json.dumps({"exit_code": 0, "stdout": out, "stderr": ""})},
        ]  # fmt: skip
    head = {"agent": "a", "task": "x-task", "track": track, "tier": "pro", "messages": messages}
    (folder / "conversation.json").write_text(json.dumps(head), encoding="utf-8")
    return View(load_run(folder / "conversation.json"))


def script(name, text):
    return (f"cat > /workspace/{name} <<'EOF'\n{text}EOF\n", "")


# -- S2b: an input in a table beside what was made of it ---------------------------------------------------------------

READ = "import numpy as np\na = np.load('/data/public/KX-1/lr.npy')\ny = net(a)\nc = zoom(a, 2)\n"
TABLES = [
    pytest.param("for n, x in (('lr', a), ('net', y)):\n    print(f'{n} {x.shape} {x.dtype} {x.min()}')", True, id="loop-over-pairs"),
    pytest.param("for x in [a, y]: print(x.shape, x.max())", True, id="loop-over-a-list"),
    pytest.param("for n, x in {'in': a, 'out': y}.items(): print(n, x.shape, x.dtype)", True, id="dictionary-items"),
    pytest.param("d = {'in': a, 'out': y}\nfor x in d.values(): print(x.shape, x.dtype)", True, id="dictionary-by-name"),
    pytest.param("for n, x in zip(('in', 'out'), (a, y)): print(n, x.shape, np.percentile(x, 99))", True, id="zip"),
    pytest.param("for i, x in enumerate((a, y)): print(i, x.shape, x.mean())", True, id="enumerate"),
    pytest.param("show = lambda n, x: print(n, x.shape, x.dtype)\nshow('in', a)", True, id="lambda"),
    pytest.param("def show(n, x):\n    print(n, x.shape, x.dtype)\nshow('in', a); show('out', y)", True, id="helper"),
    pytest.param("def info(x):\n    return f'{x.shape} {x.min()}'\nprint('in', info(a))", True, id="helper-that-returns"),
    pytest.param("rows = [(n, x.shape, x.dtype) for n, x in (('in', a), ('out', y))]\nprint(rows)", True, id="rows-of-a-list"),
    pytest.param("rows = []\nfor x in (a, y): rows.append((x.shape, x.std()))\nprint(rows)", True, id="rows-appended"),
    pytest.param("x = a[None].astype('float32')\nprint(x.shape, x.dtype)", True, id="another-type"),
    pytest.param("assert a.shape == (32, 32) and a.dtype == 'float32'", True, id="asserted"),
    pytest.param("for n, x in (('cubic', c), ('net', y)): print(n, x.shape, x.dtype)", False, id="outputs-alone"),
    pytest.param("print(y.shape, y.dtype)", False, id="output"),
    pytest.param("for x in (a, y): print(x.shape)", False, id="size-alone"),
    pytest.param("for x in (a, y): print(x.min(), x.max())", False, id="range-alone"),
    pytest.param("print(a.shape, y.dtype)", False, id="form-of-the-output"),
    pytest.param("def show(x):\n    print(x.shape, x.dtype)\ndef norm(x):\n    return x / x.max()\nn = norm(a)\nshow(y)", False, id="same-name-in-another-helper"),
    pytest.param("for x in (a, y): s = (x.shape, x.dtype)\nprint('done')", False, id="not-printed"),
    pytest.param("t = pd.read_csv('labels.csv')\nprint(t.shape, t.max())", False, id="table-of-labels"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "wanted"), TABLES)
def test_an_input_is_shown_beside_what_was_made_of_it(code, wanted):
    assert shows_input((READ + code,)) is wanted


@pytest.mark.parametrize(
    "code",
    [
        "def f(x): return f(x)\nprint(f(f))",
        "x = x\nfor x in x: print(x.shape)",
        "((",
        "",
        "a = [a]\nprint(a)",
        "a = a.shape, a.x\nprint(a, a, a)\n" * 1500,
    ],
)
def test_hostile_programs_show_nothing(code):
    assert shows_input((code,)) is False
    assert writes_each(code) is False


# -- S1d: candidates in lists and tables of any heading ----------------------------------------------------------------

WEIGHED = [
    pytest.param("**What could do it**\n1. SpotNet: learnt boxes. Weak spot: the disc.\n2. Otsu + connected components: sharp edges, but leaks.\n3. Top-hat: even light, needs tuning.\n", 3, id="any-heading"),
    pytest.param("- U-Net - no weights here, so not used\n- watershed - leaks, but sharp\n- atlas - cannot follow lesions\n", 3, id="dashes-without-heading"),
    pytest.param("## Ways\n* **SpotNet**: fast but coarse\n* **Hough**: needs a radius\n* **YOLOv8**: no checkpoint, would need training\n", 3, id="bold-names"),
    pytest.param("Ideas\n1) nnU-Net (not available here)\n2) Otsu (fails in a bias field)\n3) SegResNet (chosen, but slow)\n", 3, id="brackets"),
    pytest.param("a) TileVLM once  b) TileVLM, 3 views, majority  c) text prior: not allowed as answer\n- b\n", 3, id="letters-in-a-line"),
    pytest.param("(a) TileVLM once\n(b) TileVLM on crops\n(c) rule-based colour\nGo with (b).\n", 3, id="letters-in-lines"),
    pytest.param("a) nnU-Net full b) Otsu plain c) atlas, registered (chosen)\n", 3, id="letter-marked"),
    pytest.param("Others of the zoo, spot_s.pt (few scans) and\nspot_m.pt (one site), carry less information; spot_l.pt is taken.\n", 3, id="sentence-over-two-lines"),
    pytest.param("**Steps**\n1. SpotNet: forward pass, but in float32 only\n2. Otsu: needs the median\n3. watershed: drop pieces too small\n", 0, id="steps"),
    pytest.param("1. SpotNet: sigmoid heat, maxima\n2. Otsu: components of 12 px\n3. Union: NMS at 0.5\n", 0, id="parts-of-a-pipeline"),
    pytest.param("Known risks\n- SpotNet: too few boxes\n- Otsu: fails on pale films\n- Hough: needs clean edges\n", 0, id="risks"),
    pytest.param("- input: too large, but fits\n- output: needs a header\n- runtime: no limit, but watch it\n", 0, id="no-methods"),
    pytest.param("a) load SpotNet b) Otsu on the heat c) write the boxes\nthen submit\n", 0, id="lettered-steps"),
    pytest.param("Option A: TileVLM once\nOption B: TileVLM on crops\nOption C: rule-based colour\nChoice: B.\n", 3, id="options-in-lines"),
    pytest.param("a. nnU-Net in full\nb. Otsu, plain\nc. atlas, registered\n-> b\n", 3, id="letters-and-an-arrow"),
    pytest.param("a) SpotNet heat b) Otsu on the heat c) write the boxes\nuse a net of the zoo\n", 0, id="an-article-is-no-choice"),
    pytest.param("a) yes or no b) left or right c) count\nuse b\n", 0, id="lettered-question-types"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "count"), WEIGHED)
def test_candidates_of_a_list_are_counted_whatever_stands_above(tmp_path, text, count):
    found = weighed(view_of(tmp_path, ("ls models", "spot_s.pt\nspot_m.pt\nspot_l.pt"), text=text, track="detection"))
    assert len(found) == count if count else len(found) < 3


@pytest.mark.parametrize(
    ("head", "count"),
    [
        ("family | strengths | weaknesses | verdict", 3),
        ("option | pros | cons | -", 3),
        ("what | advantages | drawbacks | taken", 3),
        ("technique | for | against | use", 3),
        ("| plus | minus | note", 3),
        ("checkpoint | trained on | remark | role", 3),
        ("item | value | unit | source", 0),
        ("class | threshold | size | colour", 0),
        ("step | what | output | time", 0),
    ],
)
def test_tables_with_two_sides_hold_candidates(head, count):
    rows = "\n".join(f"| {n} | says much here | says little there | yes |" for n in ("one", "two", "three"))
    assert len(candidates(f"| {head} |\n|---|---|---|---|\n{rows}\n")) == count


# -- S2d, S3f: images run one by one, each text over the last ----------------------------------------------------------

LOADED = "import json\nman = json.load(open(f'/data/public/{sid}/manifest.json'))\n"
EACH = [
    pytest.param("for im in man['images']:\n    t = net.generate(load(im['file']))\n    with open(f'{out}/{sid}/report.txt', 'w') as f: f.write(t)", True, id="opened-for-each"),
    pytest.param("p = out / sid / 'report.txt'\nfor im in man['views']:\n    p.write_text(net.generate(load(im['file'])))", True, id="write-text"),
    pytest.param("for i, im in enumerate(man['images']):\n    t = run(im['file'])\n    open(out + '/report.txt', 'w').write(t)", True, id="enumerated"),
    pytest.param("for f in man.get('films'):\n    (out / 'report.txt').write_text(net.generate(f))", True, id="field-by-get"),
    pytest.param("for f in sorted(study.glob('*.png')):\n    (out / 'report.txt').write_text(net.generate(f))", True, id="folder-of-images"),
    pytest.param("def one(sid, f):\n    open(f'{sid}/report.txt', 'w').write(net.generate(f))\nfor f in man['images']: one(sid, f)", True, id="through-a-helper"),
    pytest.param("for s in studies:\n    for im in s['images']:\n        t = run(im)\n        Path(out, s['id'], 'report.txt').write_text(t)", True, id="nested"),
    pytest.param("x = stack([load(i['file']) for i in man['images']])\nopen(out + '/report.txt', 'w').write(net.generate(x))", False, id="one-call"),
    pytest.param("ts = []\nfor im in man['images']: ts.append(run(im))\nopen(out + '/report.txt', 'w').write(' '.join(ts))", False, id="joined-after"),
    pytest.param("ts = []\nfor im in man['images']:\n    ts.append(run(im))\n    (out / 'report.txt').write_text(' '.join(ts))", False, id="all-so-far"),
    pytest.param("t = ''\nfor im in man['images']:\n    t += run(im)\n    (out / 'report.txt').write_text(t)", False, id="added-up"),
    pytest.param("for im in man['images']:\n    with open(out + '/report.txt', 'a') as f: f.write(run(im))", False, id="appended"),
    pytest.param("for s in studies:\n    x = [load(i) for i in s['images']]\n    (out / s['id'] / 'report.txt').write_text(net.generate(x))", False, id="one-a-study"),
    pytest.param("for sid, files in by_study.items():\n    (out / sid / 'report.txt').write_text(net.generate([load(f) for f in files]))", False, id="grouped"),
    pytest.param("for im in man['images']:\n    (out / (im['view'] + '.txt')).write_text(run(im))\nopen(out / 'report.txt', 'w').write(both)", False, id="a-file-for-each"),
    pytest.param("for f in out.glob('*/report.txt'):\n    print(f.read_text())", False, id="read-back"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "wanted"), EACH)
def test_a_text_that_replaces_the_last_one(code, wanted):
    assert writes_each(LOADED + code) is wanted


def test_a_shell_loop_over_films_replaces_too():
    loop = "for f in /data/public/$s/*.png; do python cap.py $f {} agents_outputs/$s/report.txt; done"
    assert writes_each(loop.format(">")) is True
    assert writes_each(loop.format(">>")) is False


# -- S3: what a pilot shows --------------------------------------------------------------------------------------------

GO = "import json, sys\nimport cap\nfor sid in sys.argv[1:]:\n    man = json.load(open(f'/data/public/{sid}/manifest.json'))\n    t = cap.load('cap.pt').generate(man['images'])\n    open(f'/workspace/agents_outputs/{sid}/report.txt', 'w').write(t)\n"
SHOWN = '{"study_id": "KX-1", "images": [{"file": "ap.png", "view": "front"}, {"file": "lat.png", "view": "side"}]}'


@pytest.mark.parametrize(
    ("out", "wanted"),
    [
        ("KX-1 front -> 480 chars\nKX-1 side -> 222 chars", True),
        ("KX-1: ap.png, lat.png", True),
        ("KX-1 views ap lat", True),
        ("KX-1 front -> 480 chars", False),
        ("KX-1 2 images", False),
        ("KX-2 front, side", False),
        ("front side", False),
    ],
)
def test_a_pilot_that_names_every_listed_image(tmp_path, out, wanted):
    view = view_of(
        tmp_path, ("cat KX-1/manifest.json", SHOWN), script("go.py", GO), ("python /workspace/go.py KX-1", out)
    )
    assert logs_listed(view, view.steps[-1]) is wanted


@pytest.mark.parametrize(
    ("after", "out", "wanted"),
    [
        ("ls -l agents_outputs/KX-1", "INFO model loaded, 51 words\n-rw-r--r-- 1 root root 223 report.txt", 0),
        ("wc -c agents_outputs/KX-1/report.txt", "INFO model loaded, 51 words\n223 agents_outputs/KX-1/report.txt", 0),
        ("cat agents_outputs/KX-1/report.txt", "Vertebral body heights are preserved.", 1),
        ("head -c 300 agents_outputs/KX-1/report.txt", "The disc spaces are narrow there.", 1),
        ("python -c \"print(open('agents_outputs/KX-1/report.txt').read())\"", "The disc spaces are narrow there.", 1),
    ],
)
def test_a_report_that_is_written_is_not_yet_opened(tmp_path, after, out, wanted):
    view = view_of(tmp_path, script("go.py", GO), (f"cd /workspace && python go.py KX-1 && {after}", out))
    assert pilot_opened(view).value == wanted


@pytest.mark.parametrize(
    ("code", "runs"),
    [
        ("print(src[:src.index('@torch.no_grad')])", False),
        ("print(src.split('def forward')[0].split('.generate(')[0])", False),
        ('i = text.find(".generate(")', False),
        ("print(re.search(r'model.generate(', src))", False),
        ("print('no_grad' in src)", False),
        ("grep -n 'no_grad\\|generate(' /data/public/models/cap.py", False),
        ("cat cap.py | grep 'model.generate('", False),
        ("sed -n '/no_grad/,/return/p' cap.py", False),
        ("with torch.no_grad(): y = net(x)", True),
        ("t = model.generate(x).replace('a', 'b')", True),
        ("words = model.generate(x).split(' ')", True),
        ("for f in files: print(model.predict(f))", True),
        ("grep -c x log.txt; python -c 'model.generate(x)'", True),
    ],
)
def test_words_that_are_looked_for_are_not_run(code, runs):
    assert bool(FORWARD.search(without_searches(code))) is runs


# -- report plans in other words ---------------------------------------------------------------------------------------

CARD = (
    "cat models/README.md models/cap.py",
    "cap.pt\n`cap.load(path)`, `model.generate(images)`\ndef load(path):\nclass Cap:\n    def generate(self, x):\n    def compose(self, x):",
)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("entry point cap.load + generate", True),
        ("Entry: cap.load, cap.generate", True),
        ("entry point: load(path) then generate(images)", True),
        ("- **Entry point**: `cap.load` -> `compose`", True),
        ("inference via cap.generate", True),
        ("entry point cap.load", False),
        ("entry point is not known yet", False),
        ("cap reads the images and writes", False),
    ],
)
def test_entry_points_named_after_their_mark(tmp_path, line, wanted):
    assert bool(planned_calls(view_of(tmp_path, CARD, text=f"model cap.pt\n{line}"))) is wanted


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("input: images of manifest.json, /255", 1),
        ("Inputs: the films listed in the manifest", 1),
        ("in = manifest.json's views", 1),
        ("| input | views from each manifest |", 1),
        ("per study: manifest -> its images -> generate", 1),
        ("- **Input:** `manifest.json` images", 1),
        ("input: first of the images of manifest.json", 0),
        ("input: frontal image of manifest.json", 0),
        ("the manifest is read for the indication", 0),
        ("input: images as PNG", 0),
    ],
)
def test_the_manifests_images_as_input(tmp_path, line, wanted):
    assert all_images(view_of(tmp_path, text=line)).value == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("pilot KX-1: read the text, check its length", 1),
        ("S3: one study, open the report", 1),
        ("validate on KX-1: read its text", 1),
        ("before the batch one study; check that its text is readable", 1),
        ("read the texts, check length, submit", 0),
        ("check lengths (40 to 8,000) of all reports, submit", 0),
        ("verify that every report is non-empty", 0),
    ],
)
def test_a_check_of_all_reports_is_no_check_of_a_pilot(tmp_path, text, wanted):
    assert pilot_check(view_of(tmp_path, text=f"model cap.pt\n{text}")).value == wanted


# -- VQA: records through patterns, answers through votes --------------------------------------------------------------

COUNTS = "Counter({'How many stones are seen?': 9, 'Where is the largest stone?': 6})"
PIECES = 'cat KX-*/question.json | python -c "import sys,re,collections; print(collections.Counter(re.findall(r\'\\"question\\": \\"([^\\"]+)\\"\', sys.stdin.read())))"'


@pytest.mark.parametrize(
    ("code", "out", "wanted"),
    [
        (PIECES, COUNTS, 1),
        ("cut -d'\"' -f4 */question.json | sort | uniq -c", "      9 How many stones are seen?\n      6 Where is the largest stone?", 1),
        ("awk -F, '{print $3}' questions.csv | sort | uniq -c", "      9 How many stones are seen?", 1),
        ("python -c \"import pandas as pd; print(pd.read_csv('questions.csv').groupby('question').size())\"", "question\nHow many stones are seen?      9", 1),
        ("cat models/CARD.md", "Which model should you use? Either.\nIt asks: What is seen?", 0),
        ("ls */question.json | wc -l", "22", 0),
        ("grep -c . questions.csv", "23", 0),
        ("cat ask.py | grep '\"question\":'", "", 0),
    ],
)  # fmt: skip
def test_question_records_through_patterns_and_counts(tmp_path, code, out, wanted):
    steps = ((code, out), ("python -c \"d['options']; d['question_id']\"", "1"))
    view = view_of(tmp_path, *steps, text="question_id and options -> answer.json", track="vqa")
    assert schema_understood(view).value == wanted


ASKED = "import collections\nraws = [M.generate(v, q) for v in views]\n"


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        ("raw, n = collections.Counter(raws).most_common(1)[0]\nprint(raw)", {"raw"}),
        ("import statistics\nprint(statistics.mode(raws))", {"raw"}),
        ("print(collections.Counter(raws))", {"raw"}),
        ("def ask(q):\n    s = M.generate(q)\n    return {'raw': s, 'label': letter(s)}, 3\nr, n = ask(q)\nprint(r['raw'], r['label'])", {"raw", "parsed"}),
        ("def ask(q):\n    s = M.generate(q)\n    return [s, letter(s)]\nprint(ask(q)[0], ask(q)[1])", {"raw", "parsed"}),
        ("def ask(q):\n    s = M.generate(q)\n    t = next(v for k, v in KEY if k in s)\n    l = next(k for k, v in OPT.items() if v == t)\n    return {'lab': l}, 1\nr, n = ask(q)\nprint(r['lab'])", {"parsed"}),
        ("def ask(q):\n    s = M.generate(q)\n    return {'raw': s, 'id': 4}, 3\nr, n = ask(q)\nprint(r['id'], n)", set()),
        ("print(collections.Counter(len(r) for r in raws))", set()),
    ],
)  # fmt: skip
def test_answers_in_parts_of_a_result(code, kinds):
    assert set(Shown([ASKED + code], []).kinds()) & {"raw", "parsed"} == kinds
