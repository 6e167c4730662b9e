"""Report generation in other words: entry points of the zoo, images under other names, pilots that were repaired.

Each case is a small run in which one kind of evidence occurs, or almost occurs, and the value that a reader gives it.
"""

import json
from dataclasses import dataclass

import pytest
from ambjudge.judge.base import Request
from ambjudge.judge.heuristic import HeuristicJudge
from ambjudge.judge.heuristic.manifest import equal_counts, opens_listed
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.load import load_run
from ambjudge.trajectories.models import Segmentation


@dataclass(frozen=True)
class Do:
    """One executed action and its answer."""

    code: str
    out: str = ""
    exit: int = 0
    language: str = "bash"
    err: str = ""
    text: str = ""


def plan(text):
    return Do(f"mkdir -p /workspace/plan\ncat > /workspace/plan/plan.md <<'EOF'\n{text}\nEOF\n")


def module(name, text):
    return Do(f"cat > /workspace/{name} <<'EOF'\n{text}EOF\n")


def py(code, out="", **more):
    return Do(code, out, language="python", **more)


IDS = [f"SP-{i}" for i in range(21, 29)]
BRIEF = "Write /workspace/agents_outputs/<study_id>/report.txt for 8 spine studies. The manifest lists the films."
LIST = Do(
    "ls /data/public/models; cat /data/public/models/*.md; cat /data/public/models/vertebra.py",
    "vertebra.py\nvertebra_big.pt\n# Zoo\nvertebra_big.pt: `vertebra.open_net(path)`, then `vertebra.dictate(net, films)`.\n"
    "def open_net(path):\n    return torch.load(path)\nclass Vertebra(nn.Module):\n    def narrate(self, x):\ndef dictate(net, films):\n",
)
MANIFEST = py(
    "import json\nfor s in json.load(open('/data/public/manifest.json')): print(s['id'], s['films'])",
    "\n".join(f"{i} ['ap.png', 'lat.png']" for i in IDS),
)
MODULE = (
    "import json, torch, vertebra\nfrom PIL import Image\nNET = vertebra.open_net('/data/public/models/vertebra_big.pt')\n"
    "def report(sid):\n    man = {s['id']: s for s in json.load(open('/data/public/manifest.json'))}\n    films = [Image.open(f) for f in man[sid]['films']]\n"
    "    with torch.no_grad():\n        text = vertebra.dictate(NET, films)\n    open(f'/workspace/agents_outputs/{sid}/report.txt', 'w').write(text)\n    return text\n"
)
WRITE = module("sp.py", MODULE)
PILOT = py("import sp\nprint(sp.report('SP-21'))", "Vertebral body heights are normal. No fracture is seen.")
BATCH = py("import sp\nfor sid in IDS: print(sid, len(sp.report(sid)))", "\n".join(f"{i} 80" for i in IDS))
PLAN = "# Plan\nModel: vertebra_big.pt.\n"


def make_run(folder, steps, brief=BRIEF):
    messages = [{"role": "user", "content": brief}]
    for number, step in enumerate(steps):
        arguments = json.dumps({"language": step.language, "code": step.code})
        call = {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": "execute_code", "arguments": arguments},
        }
        answer = json.dumps({"exit_code": step.exit, "stdout": step.out, "stderr": step.err})
        messages += [
            {"role": "assistant", "content": step.text or None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": answer},
        ]
    (folder / "process").mkdir(parents=True)
    text = {
        "agent": "a",
        "model": "m",
        "task": "spine-report-task",
        "track": "report_generation",
        "tier": "standard",
        "messages": messages,
    }
    (folder / "process" / "conversation.json").write_text(json.dumps(text))
    return load_run(folder)


async def verdict(folder, steps, criterion, brief=BRIEF):
    run = make_run(folder, steps, brief)
    rubric = load_rubric("report_generation")
    asked = next(c for s in ("S1", "S2", "S3") for c in rubric.stages[s].criteria if c.id == criterion)
    segmentation = Segmentation(segments=(), turn_stages=("S1",) * len(run.turns))
    stage = criterion[:2]
    reply = await HeuristicJudge().judge(Request(run, segmentation, rubric, stage, (asked,), {}))
    result = reply.results[0]
    assert all(e.check == "verified" for e in result.evidence)
    return result.value


PLANS = [
    pytest.param("S1c", "Entry: vertebra.dictate(net, films).", 1, id="entry-call-of-the-zoo"),
    pytest.param("S1c", "Decoding: `Vertebra.narrate(x)` per study.", 1, id="entry-method-of-a-shown-class"),
    pytest.param("S1c", "Films: open_net(path), then resize(512, 512), normalise(x).", 0, id="entry-only-loading-and-shaping"),
    pytest.param("S1c", "The network is run on each study and its text is saved.", 0, id="entry-in-no-word"),
    pytest.param("S1d", "Unit | one study_id = its films", 1, id="study-in-a-table"),
    pytest.param("S1d", "Group the rows by study.", 1, id="study-by-grouping"),
    pytest.param("S1d", "All films of the manifest for a study are given to the net.", 1, id="study-by-its-films"),
    pytest.param("S1d", "Each image is a case and gets its own report.", 0, id="study-not-image"),
    pytest.param("S1d", "Write the texts and check them.", 0, id="study-in-no-word"),
    pytest.param("S1e", "Every film listed is used.", 1, id="films-all"),
    pytest.param("S1e", "All rows of the manifest go in.", 1, id="rows-all"),
    pytest.param("S1e", "Only the first film is used, all films are listed.", 0, id="films-first-only"),
    pytest.param("S1e", "The films are read.", 0, id="films-some"),
    pytest.param("S1h", "Pilot SP-21 before the batch (open report, compare with the films).", 1, id="pilot-open-and-compare"),
    pytest.param("S1h", "Pilot SP-21 before the batch.", 0, id="pilot-without-a-check"),
    pytest.param("S1k", "A rule-based text misses disc height, retrieval is too coarse: not used.", 1, id="two-set-aside"),
    pytest.param("S1k", "Options: vertebra_big.pt, retrieval, template reports. Use the net, it is the strongest.", 1, id="list-and-choice"),
    pytest.param("S1k", "Options: vertebra_big.pt, retrieval, template reports.", 0, id="list-without-choice"),
    pytest.param("S1k", "No resampling, no flips, no scaling.", 0, id="steps-refused-are-no-candidates"),
]  # fmt: skip


@pytest.mark.parametrize(("criterion", "line", "wanted"), PLANS)
async def test_what_a_plan_says_in_other_words(tmp_path, criterion, line, wanted):
    assert await verdict(tmp_path / "r", [LIST, plan(PLAN + line), WRITE, PILOT, BATCH], criterion) == wanted


CARD = Do(
    "cat /data/public/models/CARDS.md; grep -n 'def ' /data/public/models/speaker.py",
    "# Reporters\nCode: speaker.py (`Speaker.load(name)`, `.score(films)`, `.compose(scores)`).\n| name | weights |\n|---|---|\n"
    "| two_film | ap.pt, lat.pt |\n| frontal | ap.pt |\n23:    def load(cls, name='two_film'):\n28:    def score(self, films):\n39:    def compose(self, scores):\n",
)
LOADERS = [
    ("S1b", 'Speaker.load("two_film"), then all films of a study.', CARD, "", 1),
    ("S1b", "The two_film preset writes the text.", CARD, "", 1),
    ("S1b", "preset base-v2 on each study", Do("cat zoo.md"), "r = zoo.open_model(name='base-v2')", 1),
    ("S1b", "preset base-v2 on each study", Do("cat zoo.md"), "m = hub.load('org/zoo', 'base-v2')", 1),
    ("S1b", "lumbar2 for all", Do("cat zoo.md"), "m = MODELS['lumbar2']()", 1),
    ("S1b", "lumbar2 for all", Do("cat zoo.md"), "import subprocess  # describe.py --model lumbar2\nrun('describe.py --model lumbar2')", 1),
    ("S1b", "lumbar2 for all", Do("cat zoo.md", "## lumbar2 (file lumbar_b.pt)"), "", 1),
    ("S1b", "lumbar2 for all", Do("cat zoo.md", "def build(name='lumbar2'):"), "", 1),
    ("S1b", "Two film studies and frontal ones, each by the zoo.", CARD, "", 0),
    ("S1b", "Each study_id gets the text of its films.", Do("cat zoo.md"), "x = row.get('study_id')", 0),
    ("S1b", "First SP-21, then the rest.", Do("cat zoo.md"), "x = sp.load('SP-21')", 0),
    ("S1b", "set_a is written first.", Do("cat zoo.md"), "x = json.load('set_a')\nnp.load('set_a')\nImage.open('set_a')", 0),
    ("S1c", 'Speaker.load("two_film").score -> words -> report.txt', CARD, "", 1),
    ("S1c", "speaker.compose on the scores of each study", CARD, "", 1),
    ("S1c", "the `compose` method writes each text", CARD, "", 1),
    ("S1c", "Entry point: compose, per study", CARD, "", 1),
    ("S1c", 'Speaker.load("two_film") and its films', CARD, "", 0),
    ("S1c", "report.score of the metric, films.png", Do("cat zoo.md"), "", 0),
    ("S1c", "We compose each report from the score of its films.", CARD, "", 0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("criterion", "line", "card", "code", "wanted"), LOADERS, ids=[f"{c[0]}-{n}" for n, c in enumerate(LOADERS)]
)
async def test_a_plan_names_what_is_loaded_by_a_name(tmp_path, criterion, line, card, code, wanted):
    steps = [
        card,
        plan(f"# Plan\n{line}\n"),
        WRITE,
        py(f"import sp\n{code}\nprint(sp.report('SP-21'))", PILOT.out),
        BATCH,
    ]
    assert await verdict(tmp_path / "r", steps, criterion) == wanted


CHECKS = [
    ("Pilot on one study, read the text, then all.", 1),
    ("Pilot: one study first; proofread its wording.", 1),
    ("Pilot with SP-21, look at the written output, go on.", 1),
    ("Smoke run on SP-21: the text is read, then the batch.", 1),
    ("Pilot SP-21 and reread it, then all.", 1),
    ("Pilot on one study, read the manifest, then all.", 0),
    ("Pilot on one study: read the films and run.", 0),
    ("Pilot on one study, then look at all studies.", 0),
]


@pytest.mark.parametrize(("line", "wanted"), CHECKS)
async def test_a_pilot_whose_text_is_read(tmp_path, line, wanted):
    assert await verdict(tmp_path / "r", [LIST, plan(f"{PLAN}{line}\n"), WRITE, PILOT, BATCH], "S1h") == wanted


USED = py(
    "import sp\nprint(sp.report('SP-21'))", "used ['lat.png', 'ap.png'] 41 tokens\nNo fracture is seen in the spine."
)
KEPT = "used = []\nfor i in man['films']:\n    used.append(i['file'])\n"
COUNTING = (
    "import json, speaker\nNET = speaker.Speaker.load('two_film')\ndef report(sid):\n    s = {s['id']: s for s in json.load(open('/data/public/manifest.json'))}[sid]\n"
    "    text = NET.generate([(R + f['file'], f['view']) for f in s['films']])\n    open(f'/workspace/agents_outputs/{sid}/report.txt', 'w').write(text)\n"
    "    print(sid, len(s['films']))\n    return text\n"
)
RUNS = [
    pytest.param("S3f", [MANIFEST, WRITE, USED], 1, id="used-as-listed-earlier-in-any-order"),
    pytest.param("S3f", [MANIFEST, WRITE, py(USED.code, USED.out.replace("'lat.png', ", ""))], 0, id="one-of-two-used"),
    pytest.param("S3f", [MANIFEST, WRITE, py(USED.code, "manifest: ['lat.png', 'ap.png']\nNo fracture is seen.")], 0, id="listed-is-not-used"),
    pytest.param("S3f", [MANIFEST, WRITE, py(PILOT.code, "films used 2 in manifest 2\nNo fracture is seen.")], 1, id="equal-counts"),
    pytest.param("S3f", [MANIFEST, WRITE, py(PILOT.code, "films used 1 in manifest 2\nNo fracture is seen.")], 0, id="unequal-counts"),
    pytest.param("S3f", [MANIFEST, WRITE, py(PILOT.code, "films=2/2 chars=41\nNo fracture is seen.")], 1, id="all-of-all"),
    pytest.param("S3f", [MANIFEST, WRITE, py(PILOT.code, "films=1/2 chars=41\nNo fracture is seen.")], 0, id="one-of-all"),
    pytest.param("S3f", [MANIFEST, WRITE, py(PILOT.code, "films 2/2 on disk\nNo fracture is seen.")], 0, id="all-are-there"),
    pytest.param("S3f", [MANIFEST, WRITE, py(PILOT.code, "study 1/1\nNo fracture is seen.")], 0, id="progress"),
    pytest.param("S3f", [MANIFEST, module("sp.py", COUNTING), py("import sp\nprint(sp.report('SP-21'))", "SP-21 2 No fracture is seen.")], 1, id="number-of-a-list-that-goes-in-whole"),
    pytest.param("S3f", [MANIFEST, module("sp.py", COUNTING.replace("in s['films']]", "in s['films'][:1]]")), py("import sp\nprint(sp.report('SP-21'))", "SP-21 2 No fracture is seen.")], 0, id="number-of-a-list-that-goes-in-in-part"),
    pytest.param("S2c", [module("sp.py", COUNTING), py("import sp\nprint(sp.report('SP-21'))", "SP-21 2 No fracture is seen.")], 1, id="opened-by-the-zoo"),
    pytest.param("S3d", [WRITE, py("import sp\nprint(sp.report('SP-21'))", "The disc spaces are narrow at two levels.")], 1, id="a-sentence-printed"),
    pytest.param("S3d", [WRITE, py("import sp\nprint(len(sp.report('SP-21')))", "SP-21 41")], 0, id="only-a-length-printed"),
    pytest.param("S2f", [plan(PLAN + "Entry: vertebra.dictate(net, films)"), WRITE, PILOT, BATCH], 1, id="planned-call-ran"),
    pytest.param("S2f", [plan(PLAN + "Entry: vertebra.ReportBeam(net)"), WRITE, PILOT, BATCH], 0, id="planned-call-never-ran"),
    pytest.param("S2g", [WRITE, PILOT, BATCH], 1, id="written-under-the-prescribed-path"),
    pytest.param("S2g", [module("sp.py", MODULE.replace("agents_outputs", "texts")), PILOT, BATCH], 0, id="written-elsewhere"),
    pytest.param("S3b", [WRITE, PILOT, Do("cat > /workspace/all.py <<'EOF'\nimport sp\nfor sid in sp.IDS: print(sid, len(sp.report(sid)))\nEOF\npython /workspace/all.py", BATCH.out)], 1, id="batch-script-imports-the-pilot's-module"),
]  # fmt: skip


@pytest.mark.parametrize(("criterion", "steps", "wanted"), RUNS)
async def test_what_a_pilot_shows_of_its_images(tmp_path, criterion, steps, wanted):
    assert await verdict(tmp_path / "r", [LIST, *steps], criterion) == wanted


SHORT = py(PILOT.code, "Vertebral body heights are normal. Impression", text="Pilot.")
EDIT = Do("sed -i 's/films)/films, max_len=90)/' /workspace/sp.py\n", text="The end is cut off, the limit is too low.")
AGAIN = py(PILOT.code, PILOT.out)
RERUNS = [
    pytest.param([WRITE, SHORT, EDIT, AGAIN, BATCH], 1, id="cut-text-limit-raised-same-case"),
    pytest.param([WRITE, SHORT, EDIT, py("import sp\nprint(sp.report('SP-22'))", PILOT.out), BATCH], None, id="another-case"),
    pytest.param([WRITE, SHORT, AGAIN, BATCH], None, id="nothing-changed"),
    pytest.param([WRITE, PILOT, Do("echo 'TAIL = 1' >> /workspace/sp.py", text="Reads well."), py(PILOT.code, "Longer. " + PILOT.out), BATCH], None, id="a-good-pilot-extended"),
    pytest.param([WRITE, SHORT, EDIT, Do("python -c \"import sp; print(sp.report('SP-21'))\"; grep -c '\\[' /workspace/agents_outputs/SP-21/report.txt", PILOT.out + "\n0", 1), BATCH], 1, id="grep-that-counts-none-is-no-failure"),
    pytest.param([WRITE, SHORT, EDIT, Do("python -c \"import sp; print(sp.report('SP-21'))\"", PILOT.out, 1, err="ValueError: shape"), BATCH], None, id="a-crash-is-no-rerun"),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "wanted"), RERUNS)
async def test_a_pilot_is_rerun_after_its_result_was_repaired(tmp_path, steps, wanted):
    assert await verdict(tmp_path / "r", [LIST, MANIFEST, *steps], "S3g") == wanted


async def test_without_a_prescribed_path_the_export_question_does_not_apply(tmp_path):
    assert await verdict(tmp_path / "r", [LIST, WRITE, PILOT, BATCH], "S2g", brief="Write reports.") is None


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("images used 3 in manifest 3", True),
        ("loaded 2/2 frames", True),
        ("frames used: 4 of 4", True),
        ("images used 2 in manifest 3", False),
        ("0 of 0 images used", False),
        ("SP-21 used 3 of 4 films, 3 sections", False),
        ("SP-21 used 3 of 4 films, 4 sections", False),
        ("3 images, 3 sections", False),
    ],
)
def test_equal_counts(line, wanted):
    assert equal_counts(line) is wanted


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("m = json.load(open('manifest.json'))\nfor i in m: read_frame(net, f\"{R}/{i['file']}\")", True),
        ("m = json.load(open('manifest.json'))\nfor i in m: print(i['file'])", False),
        ("m = json.load(open('manifest.json'))\nfor i in m: os.path.exists(i['file'])", False),
        ("for i in m: read_frame(net, i['file'])", False),
    ],
)
def test_a_path_from_the_manifest_is_handed_over(code, wanted):
    assert opens_listed(code) is wanted
