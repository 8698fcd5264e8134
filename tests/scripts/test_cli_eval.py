# SPDX-License-Identifier: MIT
"""sluice eval kl, kv and needle: figures against a reference in Python, the reports, and what is refused. test_cli_perplexity.py has
the perplexities of real models."""
import functools, json, math, pathlib, random, struct, tempfile, unittest

from cli import TINY, Case, sluice
from page import Page

MODEL = TINY / "llama-linear-spm.gguf"
WIDE = TINY / "qwen3.gguf"  # heads of whole groups, as quantised caches need them
IDS = [1, 5, 9, 2, 7, 7, 3, 11, 4, 8, 6, 10]


def npy(rows, head=None):
    """The bytes of a .npy file of float32 rows."""
    text = head if head is not None else f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}"
    data = text.encode() + b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(data)) + data + b"".join(struct.pack(f"<{len(r)}f", *r) for r in rows)


def rows_of(data):
    n = struct.unpack("<H", data[8:10])[0]
    shape = eval(data[10:10 + n].decode())["shape"]
    flat = struct.unpack(f"<{shape[0] * shape[1]}f", data[10 + n:])
    return [list(flat[i * shape[1]:(i + 1) * shape[1]]) for i in range(shape[0])]


def softmax(row):
    most = max(row)
    p = [math.exp(v - most) for v in row]
    return [v / sum(p) for v in p]


def divergence(reference, other):
    return sum(a * math.log(a / b) for a, b in zip(softmax(reference), softmax(other)) if a > 0)


def folder(case):
    made = tempfile.TemporaryDirectory()
    case.addCleanup(made.cleanup)
    return pathlib.Path(made.name)


def put(path, data):
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def check_page(case, path):
    text = path.read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    case.assertEqual((page.open, page.trouble), ([], []), "well-formed, and fetches nothing")
    case.assertEqual(page.count["svg"], 1)
    case.assertNotRegex(text, r"https?://|url\(|@import|<script|\bnan\b|\binf\b")


class Divergence(Case):
    def setUp(self):
        self.folder = folder(self)
        self.ids = put(self.folder / "ids.json", json.dumps(IDS))
        self.saved = self.folder / "own.npy"
        self.ok(sluice("eval", "logits", MODEL, "--ids", self.ids, "--out", self.saved))

    def kl(self, ref, *args, ids=None):
        return sluice("eval", "kl", MODEL, "--ids", ids or self.ids, "--ref", ref, *args)

    def test_of_its_own_logits_there_is_none(self):
        out = self.ok_json(self.kl(self.saved, "--json"))
        self.assertEqual((out["positions"], out["top1_equal"], out["top1"]), (len(IDS), len(IDS), 1))
        self.assertLess(out["max"], 1e-12)

    def test_figures(self):
        own, rng = rows_of(self.saved.read_bytes()), random.Random(5)
        other = [[v + rng.gauss(0, 0.3) for v in row] for row in own]
        other[0] = other[0][::-1]  # the first position is kept apart
        out = self.ok_json(self.kl(put(self.folder / "other.npy", npy(other)), "--json"))
        want = [divergence(a, b) for a, b in zip(other, own)]
        rest = sorted(want[1:])
        self.assertAlmostEqual(out["position_0"], want[0], delta=1e-5 * want[0])
        self.assertAlmostEqual(out["mean"], sum(rest) / len(rest), delta=1e-5 * rest[-1])
        self.assertAlmostEqual(out["median"], (rest[5] + rest[5]) / 2, delta=1e-5 * rest[-1])
        self.assertAlmostEqual(out["max"], rest[-1], delta=1e-5 * rest[-1])
        self.assertEqual(out["max_at"], want[1:].index(rest[-1]) + 1)
        self.assertEqual(out["top1_equal"], sum(a.index(max(a)) == b.index(max(b)) for a, b in zip(other, own)))

    def test_steps_do_not_matter(self):
        other = put(self.folder / "other.npy", npy([[v * 1.1 for v in row] for row in rows_of(self.saved.read_bytes())]))
        self.assertEqual(self.ok(self.kl(other, "--json")), self.ok(self.kl(other, "--json", "--chunk", "5")))

    def test_one_position(self):
        one = put(self.folder / "one.json", "[3]")
        row = put(self.folder / "one.npy", npy(rows_of(self.saved.read_bytes())[:1]))
        self.assertEqual(self.ok_json(self.kl(row, "--json", ids=one))["positions"], 1)

    def test_text_and_page(self):
        page = self.folder / "kl.html"
        text = self.ok(self.kl(self.saved, "--html", page)).decode()
        for word in ("mean", "median", "p99", f"{len(IDS)} of {len(IDS)}"):
            self.assertIn(word, text)
        check_page(self, page)

    def test_what_does_not_fit_is_refused(self):
        own = rows_of(self.saved.read_bytes())
        self.refused(self.kl(put(self.folder / "a.npy", npy(own[:3]))), "3 positions", f"{len(IDS)} ids")
        self.refused(self.kl(put(self.folder / "a.npy", npy([r[:7] for r in own]))), "7 logits")
        own[4][3] = float("nan")
        self.refused(self.kl(put(self.folder / "a.npy", npy(own))), "row 4", "NaN")
        self.refused(self.kl(self.folder / "none.npy"), "none.npy")
        self.refused(sluice("eval", "kl", MODEL, "--ids", self.ids), "--ref", status=2)

    def test_hostile_files_are_refused(self):
        whole = self.saved.read_bytes()
        for n in (0, 5, 9, 11, 60, 127, len(whole) - 1):
            self.refused(self.kl(put(self.folder / "cut.npy", whole[:n])), "cut.npy")
        self.refused(self.kl(put(self.folder / "long.npy", whole + b"\0")), "shape")
        heads = ("", "{}", "{'descr': '<f8', 'fortran_order': False, 'shape': (12, 9), }",
                 "{'descr': '<f4', 'fortran_order': True, 'shape': (12, 9), }",
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (12,), }",
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (), }",
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9), }",
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 9), }",
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999, 1), }",
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }", "{'descr'", "'shape': (", "{'descr': " * 300)
        for head in heads:
            with self.subTest(head=head[:70]):
                self.refused(self.kl(put(self.folder / "bad.npy", npy([[0.0] * 9] * 12, head))), "bad.npy")
        big = whole[:6] + b"\x02\x00" + b"\xff\xff\xff\xff"
        self.refused(self.kl(put(self.folder / "bad.npy", big)), "bad.npy")
        rng = random.Random(3)
        for _ in range(20):  # any byte of the head may be another; a sanitizer would see a wild read
            data = bytearray(whole)
            data[rng.randrange(127)] = rng.randrange(256)
            self.assertIn(self.kl(put(self.folder / "bad.npy", bytes(data))).returncode, (0, 1))


WORDS = "the of and to in light ray glass prism colour angle that is by it are which".split()


@functools.lru_cache(None)
def prose():
    rng = random.Random(1)
    return " ".join(rng.choice(WORDS) for _ in range(400))


class Types(Case):
    def setUp(self):
        self.folder = folder(self)

    def kv(self, *args):
        return sluice("eval", "kv", WIDE, put(self.folder / "text.txt", prose()), "--ctx", "64", "--windows", "3", *args)

    def test_figures(self):
        out = self.ok_json(self.kv("--types", "f32,q8_0,q8_0/q4_0", "--json"))
        f16, f32, q8, mixed = out["types"]
        self.assertEqual([t["name"] for t in out["types"]], ["f16", "f32", "q8_0", "q8_0/q4_0"])
        self.assertEqual((mixed["k"], mixed["v"]), ("q8_0", "q4_0"))
        self.assertEqual((out["ctx"], out["windows"], out["scored"]), (64, 3, 3 * 31))
        self.assertEqual((f16["bits"], f32["bits"], f16["loss"], f16["kl_max"], f16["top1"]), (16, 32, 0, 0, 1))
        self.assertTrue(4 < mixed["bits"] < q8["bits"] < 16)
        for t in (f32, q8, mixed):
            self.assertAlmostEqual(t["loss"], t["ppl"] / f16["ppl"] - 1, 6)
        self.assertLess(f32["kl_mean"], q8["kl_mean"])
        self.assertLess(q8["kl_mean"], mixed["kl_mean"])

    def test_a_type_is_not_recommended_on_too_few_predictions(self):
        few, more = (self.ok_json(self.kv("--types", "f32,q8_0", "--json", "--windows", n)) for n in ("2", "3"))
        self.assertEqual((few["scored"], few["recommended"], more["recommended"]), (62, "f16", "q8_0"))
        self.assertEqual([t["safe"] for t in few["types"][1:]], [False, False])

    def test_perplexity_is_that_of_eval_ppl(self):
        out = self.ok_json(self.kv("--types", "f32", "--json", "--windows", "0"))
        for t in out["types"]:
            ppl = self.ok_json(sluice("eval", "ppl", WIDE, put(self.folder / "text.txt", prose()), "--ctx", "64", "--kv", t["name"], "--json"))
            self.assertEqual((ppl["windows"], ppl["scored"]), (out["windows"], out["scored"]))
            self.assertAlmostEqual(t["ppl"], ppl["ppl"], delta=1e-4 * ppl["ppl"])

    def test_only_what_is_safe_is_recommended(self):
        out = self.ok_json(self.kv("--json"))
        bits = {t["name"]: t["bits"] for t in out["types"]}
        for t in out["types"]:
            self.assertEqual(t["safe"], t["name"] == "f16" or t["loss"] + 2 * t["loss_stderr"] < out["bound"])
        best = min((t for t in out["types"] if t["safe"]), key=lambda t: t["bits"])
        self.assertEqual(out["recommended"], best["name"])
        self.assertEqual(out["bound"], 0.015)
        self.assertLess(bits["q4_0"], bits["q8_0"])

    def test_what_a_model_cannot_have_is_left_out_unless_asked_for(self):
        args = ("eval", "kv", MODEL, put(self.folder / "text.txt", prose()), "--ctx", "64", "--windows", "1")  # heads of 8
        done = sluice(*args, "--json")
        out = self.ok_json(done)
        self.assertEqual((out["recommended"], [t["name"] for t in out["types"]]), ("f16", ["f16"]))
        self.assertIn(b"q8_0/q4_0 is left out", done.stderr)
        self.refused(sluice(*args, "--types", "q8_0"), "8 wide")

    def test_table_and_page(self):
        page = self.folder / "kv.html"
        text = self.ok(self.kv("--types", "q8_0", "--html", page)).decode()
        for word in ("KV type", "bits", "q8_0", "recommended: --kv"):
            self.assertIn(word, text)
        check_page(self, page)

    def test_refusals(self):
        self.refused(self.kv("--types", "q8_0,,q4_0"), "--types", status=2)
        self.refused(self.kv("--types", "q8_0,q8_0"), "twice", status=2)
        self.refused(self.kv("--types", "a/b/c"), "--types", status=2)
        self.refused(self.kv("--types", "x" * 100), "--types", status=2)
        self.refused(self.kv("--types", ",".join(f"t{i}" for i in range(40))), "more than", status=2)
        self.refused(self.kv("--types", "q9_9"), "q9_9")
        self.refused(self.kv("--kv", "f32"), "--types", status=2)
        self.refused(self.kv("--ctx", "63"), "from the 33rd position on", status=2)
        self.refused(sluice("eval", "kv", WIDE, put(self.folder / "short.txt", "a b")), "less than one window")


class Needle(Case):
    def setUp(self):
        self.folder = folder(self)

    def needle(self, *args):
        return sluice("eval", "needle", MODEL, "--lengths", "300,500", "--depths", "0,100", *args)

    def test_shape(self):
        out = self.ok_json(self.needle("--json", "--trials", "2"))
        self.assertEqual([(c["length"], c["depth"], c["tried"]) for c in out["cells"]], [(300, 0, 2), (300, 100, 2), (500, 0, 2), (500, 100, 2)])
        for c in out["cells"]:
            self.assertTrue(c["length"] - 120 < c["tokens"] <= c["length"], c)
        self.assertEqual((out["tried"], out["found"]), (8, sum(c["found"] for c in out["cells"])))
        self.assertEqual(out["recall"], out["found"] / 8)

    def test_same_seed_same_answers(self):
        first, again, other = (self.ok_json(self.needle("--json", "--seed", s)) for s in (7, 7, 8))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_table_and_page(self):
        page = self.folder / "needle.html"
        text = self.ok(self.needle("--html", page)).decode()
        self.assertRegex(text, r"found \d of 4 \(")
        check_page(self, page)

    def test_refusals(self):
        self.refused(self.needle("--ctx", "100"), "--ctx", status=2)
        self.refused(sluice("eval", "needle", MODEL, "--lengths", "64"), "--lengths", status=2)
        self.refused(sluice("eval", "needle", MODEL, "--depths", "0,101"), "--depths", status=2)
        self.refused(sluice("eval", "needle", MODEL, "--lengths", "900,500"), "rise", status=2)
        self.refused(sluice("eval", "needle", TINY / "none.gguf"), "none.gguf")


class Command(Case):
    def test_what_to_measure(self):
        self.refused(sluice("eval"), "kl", "needle", status=2)
        self.refused(sluice("eval", "nedle"), "needle", status=2)
        self.assertIn(b"eval needle", self.ok(sluice("eval", "--help")))
        for name in ("logits", "kl", "ppl", "kv", "needle"):
            self.assertIn(b"--json" if name != "logits" else b"--out", self.ok(sluice("eval", name, "--help")))


if __name__ == "__main__":
    unittest.main()
