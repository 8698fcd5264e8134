# SPDX-License-Identifier: MIT
"""bench/compare, with peers that are scripts of known speed."""
import json, pathlib, subprocess, sys, tempfile

from cli import ROOT, SLUICE, TINY, Case

sys.path.insert(0, str(ROOT / "bench"))
import compare  # noqa: E402
import peers  # noqa: E402

MODEL = TINY / "llama-linear-spm.gguf"
FAKE = """#!/usr/bin/env python3
import json, sys
a = dict(zip(sys.argv[1::2], sys.argv[2::2]))
out = []
if int(a["-p"]): out.append({"n_prompt": int(a["-p"]), "n_gen": 0, "samples_ts": [%g]})
n = int(a["-n"]) or int(a.get("-gp", "0,0").split(",")[1])
if n: out.append({"n_prompt": 0, "n_gen": n, "samples_ts": [%g], "samples_ns": [i * 1000000 for i in range(1, 101)]})
print(json.dumps(out))
"""


class Compare(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, speeds in (("a", (10, 2)), ("b", (20, 1))):
            tool = self.folder / name / "llama-bench"
            tool.parent.mkdir()
            tool.write_text(FAKE % speeds)
            tool.chmod(0o755)

    def compare(self, *args):
        return subprocess.run([ROOT / "bench/compare", MODEL, "--sluice", SLUICE, "--llama", self.folder / "a", "--ik", self.folder / "b",
                               "--rounds", "1", "--out", self.folder / "out.json", *map(str, args)], capture_output=True, timeout=300)

    def rows(self, *args):
        lines = self.ok(self.compare(*args)).decode().splitlines()
        return [[c.strip() for c in line.split("|")[1:-1]] for line in lines if line.startswith("|")]

    def test_speed(self):
        head, _, row = self.rows("--prefill", 4, "--decode", 8)
        got = dict(zip(head, row))
        kept = json.loads((self.folder / "out.json").read_text())["results"][0]
        self.assertEqual((got["prefill llama.cpp"], got["prefill ik_llama.cpp"]), ("10.0", "20.0"))
        self.assertEqual((got["decode llama.cpp"], got["decode ik_llama.cpp"]), ("2.0", "1.0"))
        ours = kept["speed"]["sluice"][0]
        ratios = [float(v) for h, v in zip(head, row) if h == "ratio"]
        self.assertAlmostEqual(ratios[0], ours["prefill"] / 20, delta=0.01)
        self.assertAlmostEqual(ratios[1], ours["decode"] / 2, delta=0.01)
        self.assertEqual(len(kept["sluice"][0]["decode"]), 1)

    def test_jitter(self):
        rows = self.rows("--jitter", "--tokens", 20)
        self.assertEqual(rows[3][1:], ["llama.cpp", "50.50", "90.00", "99.00", "100.00", "1.960"])

    def test_what_a_peer_cannot_do_is_left_out(self):
        rows = self.rows("--rows", "1,2")
        self.assertEqual([r[1] for r in rows[2:]], ["sluice"])
        self.assertEqual(rows[2][2].split()[1], "(1.00)")

    def test_a_peer_that_fails(self):
        (self.folder / "a/llama-bench").write_text("#!/bin/sh\necho no such model >&2\nexit 3\n")
        done = self.compare("--prefill", 4, "--decode", 2)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"no such model", done.stderr)
        self.assertEqual(self.compare("--rows", "2,1").returncode, 2)

    def test_ratio(self):
        self.assertEqual(compare.ratio(3, [2, 1]), 1.5)
        self.assertEqual(compare.ratio(2, [4, 6], False), 2)
        self.assertIsNone(compare.ratio(2, [None]))
        self.assertEqual(compare.median([3, None, 1]), 2)

    def test_spinners_end(self):
        with peers.Spinners() as spinners:
            children = spinners.children
            self.assertTrue(children)
        for child in children:
            self.assertFalse(pathlib.Path(f"/proc/{child}").exists())


if __name__ == "__main__":
    import unittest
    unittest.main()
