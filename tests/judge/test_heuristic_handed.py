"""Images of a manifest that a program gives to a function: other zoos and styles of code, and what is only a look."""

import pytest
from ambjudge.judge.heuristic.handed import MAX_NODES, NOTHING, handed

READ = "import json\nS = json.load(open(R / 'manifest.json'))['studies']\n"
TAKEN = [
    ("for s in S:\n    p = net.probs([(R / i['file'], i['view']) for i in s['images']])", "probs", "s['images']"),
    ("for s in S:\n    t = m.generate([R / i['file'] for i in s['images']], 0.5)", "generate", "s['images']"),
    ("paths = [R / f for f in S[0]['films']]\ntext = zoo.dictate(net, paths)", "dictate", "S[0]['films']"),
    ("feats = []\nfor im in s['frames']:\n    feats.append(net.encode(str(R / im['path'])))", "encode", "s['frames']"),
    ("ims = []\nfor i in s['images']:\n    ims.append((os.path.join(R, i['file']), i['view']))\nm.compose(ims)", "compose", "s['images']"),
    ("df = pd.read_csv(R / 'manifest.csv')\nfor r in df.itertuples():\n    x = tile(R / r.file)", "tile", "df.itertuples()"),
    ("x = g['image_path'].map(read_film)", "map", None),
    ("by = {}\nfor r in S:\n    by.setdefault(r['study'], []).append(r['file'])\nd = describe(images=by['a'])", "describe", None),
    ("with ThreadPoolExecutor() as e: xs = list(e.map(prep, sorted(s['sweeps'])))", "map", None),
    ("a = np.load(f\"{R}/{s['image_file']}\")", "load", None),
    ("x = net(s.get('images'))", "net", None),
]  # fmt: skip


@pytest.mark.parametrize(("code", "call", "whole"), TAKEN, ids=[str(n) for n in range(len(TAKEN))])
def test_a_function_takes_the_images_of_records(code, call, whole):
    found = handed(READ + code)
    assert call in found.calls
    assert whole is None or whole in found.whole


LOOKS = [
    "for s in S:\n    print(s['id'], [i['file'] for i in s['images']])",
    "print(len(s['images']), all((R / i['file']).exists() for i in s['images']))",
    "n = len(s['images'])\nmodel(n)",
    "m.generate([i['view'] for i in s['images']])",
    "log.info('%s %s', s['id'], s['images'])",
    "names = sorted(os.path.basename(i['file']) for i in s['images'])",
    "json.dump({'images': s['images']}, open('x.json', 'w'))",
    "m.generate(s['indication'])",
    "open(args.file)",
    "f(cfg['n_images'])",
    "xs = s['images'].map(len)",
]  # fmt: skip


@pytest.mark.parametrize("code", LOOKS, ids=[str(n) for n in range(len(LOOKS))])
def test_a_look_takes_none(code):
    assert handed(READ + code).calls == frozenset()


PARTS = [
    "m.generate([R / i['file'] for i in s['images'] if i['view'] == 'frontal'])",
    "m.generate(s['images'][:1])",
    "m.generate([R / s['images'][0]['file']])",
    "ims = []\nfor i in s['images']:\n    if i['view'] == 'ap':\n        ims.append(R / i['file'])\nm.generate(ims)",
    "xs = []\nfor i in s['images']:\n    if i['view'] != 'ap': continue\n    xs.append(m.encode(R / i['file']))",
    "for i in s['images']:\n    check(R / i['file'])",
    "for i in s['images']:\n    xs.append(m.encode(R / i['file']))\n    break",
]  # fmt: skip


@pytest.mark.parametrize("code", PARTS, ids=[str(n) for n in range(len(PARTS))])
def test_a_part_of_a_list_is_not_the_whole(code):
    found = handed(READ + code)
    assert found.calls
    assert "s['images']" not in found.whole


@pytest.mark.parametrize("code", ["for x in (", "f(s['images'])\n" * MAX_NODES], ids=["no-python", "without-end"])
def test_hostile_programs_give_nothing(code):
    assert handed(code) == NOTHING
