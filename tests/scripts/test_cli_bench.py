# SPDX-License-Identifier: MIT
"""sluice bench: the shape of its results, its report, and what it refuses. No figure is judged: that is bench/compare's work."""
import csv, functools, io, json, pathlib, re, tempfile

from cli import TINY, Case, sluice
from page import Page

MODEL = TINY / "llama-linear-spm.gguf"
# Reading the bandwidth is what takes time, so runs are few and shared.
SHORT = ("--prefill", "1,5", "--decode", "6", "--depth", "0,4", "--reps", "1", "--rows", "1,3")


@functools.lru_cache(None)
def bench(*args):
    return sluice("bench", MODEL, *SHORT, *args)


class Results(Case):
    def test_json(self):
        out = self.ok_json(bench("--json", "--reps", "2"))
        for name in ("read_gb_s", "bytes_per_token", "prefill", "decode", "machine", "model", "options", "spread", "noise"):
            self.assertIn(name, out)
        self.assertGreater(out["read_gb_s"], 0)
        self.assertGreater(out["bytes_per_token"], 0)
        self.assertIn(out["read_gb_s"], [r["gb_s"] for r in out["read"]])
        self.assertEqual([p["n"] for p in out["prefill"]], [1, 5])
        self.assertEqual([(d["depth"], d["n"]) for d in out["decode"]], [(0, 6), (4, 6)])
        self.assertEqual([r["n"] for r in out["rows"]], [1, 3])
        for p in out["prefill"]:
            self.assertGreater(p["tok_s"], 0)
            self.assertGreaterEqual(p["ttft_ms"] * p["tok_s"] / 1e3 / p["n"], 0.1)  # medians of different runs, of one machine
            self.assertEqual(len(p["runs"]), 2)
        for d in out["decode"]:
            itl = d["itl_ms"]
            self.assertTrue(0 < itl["p50"] <= itl["p90"] <= itl["p99"] <= itl["max"], itl)
            self.assertAlmostEqual(itl["jitter"], itl["p99"] / itl["p50"], 5)
            self.assertAlmostEqual(d["tpot_ms"], itl["mean"], 5)
            self.assertAlmostEqual(d["gb_s"], d["bytes"] * d["tok_s"] * 1e-9, 5)
            self.assertAlmostEqual(d["share"], d["gb_s"] / out["read_gb_s"], 4)
            self.assertEqual((d["allocs"], d["faults"]), (0, 0))
            self.assertEqual(sorted(d["runs"])[0] <= d["tok_s"] <= sorted(d["runs"])[-1], True)
        self.assertGreater(out["decode"][1]["bytes"], out["decode"][0]["bytes"])  # deeper reads more of the cache
        self.assertEqual(out["noise"]["noisy"], bool(out["noise"]["why"]))
        self.assertEqual(out["rows"][0]["ratio"], 1)

    def test_bandwidth_is_read_between_the_runs(self):
        reads = self.ok_json(bench("--json", "--reps", "2"))["read"]
        self.assertEqual(max(len(r["runs"]) for r in reads), 2 + 2 * (1 + 2))
        self.assertTrue(all(len(r["runs"]) >= 2 for r in reads))

    def test_parts_can_be_left_out(self):
        out = self.ok_json(sluice("bench", MODEL, "--prefill", "0", "--decode", "0", "--reps", "1", "--json"))
        self.assertEqual((out["prefill"], out["decode"], out["rows"]), ([], [], []))
        self.assertGreater(out["read_gb_s"], 0)

    def test_table(self):
        text = self.ok(bench()).decode()
        for words in ("memory read", "prefill", "decode", "step", "The machine was", "the limit"):
            self.assertIn(words, text)
        self.assertNotRegex(text, r"\bnan\b|\binf\b")

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.ok(bench("--csv")).decode()), strict=True))
        self.assertTrue(all(None not in r and None not in r.values() for r in rows), "every line has every column")
        kinds = [r["kind"] for r in rows]
        self.assertEqual([k for k in kinds if k != "read"], ["prefill"] * 2 + ["decode"] * 2 + ["rows"] * 2)
        for r in rows:
            if r["kind"] == "decode":
                self.assertAlmostEqual(float(r["gb_s"]), float(r["bytes"]) * float(r["tok_s"]) * 1e-9, delta=0.01 * float(r["gb_s"]))

    def test_options_reach_the_engine(self):
        out = self.ok_json(sluice("bench", MODEL, "--prefill", "2", "--decode", "2", "--depth", "0", "--reps", "1", "--json", "--threads", "1",
                                  "--kv", "f32", "--backend", "ref", "--ctx", "32"))
        options = out["options"]
        self.assertEqual((options["threads"], options["kv"], options["backend"], options["ctx"]), (1, "f32", "ref", 32))


class Report(Case):
    def test_report(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "r.html"
            out = self.ok_json(sluice("bench", MODEL, *SHORT, "--json", "--html", path))
            text = path.read_text(encoding="utf-8")
            page = Page()
            page.feed(text)
            self.assertEqual((page.open, page.trouble), ([], []))
            self.assertEqual(page.count["svg"], 5)  # TTFT, decode by depth, a histogram for each depth, roofline
            self.assertNotRegex(text, r"https?://|url\(|@import|<script|nan|inf\b")
            self.assertIn("prefers-color-scheme:dark", text)
            self.assertIn(f"{out['decode'][0]['itl_ms']['p99']:.2f}", text)
            self.assertEqual([p.name for p in path.parent.iterdir()], ["r.html"])

    def test_names_are_shown_as_they_are(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "<b>&\"x.gguf"
            model.write_bytes(re.sub(rb"general\.name", b"general.nome", MODEL.read_bytes()))  # so that the path is shown
            path = pathlib.Path(folder) / "r.html"
            self.ok(sluice("bench", model, "--prefill", "2", "--decode", "0", "--reps", "1", "--html", path))
            self.assertIn("&lt;b&gt;&amp;&quot;x.gguf", path.read_text(encoding="utf-8"))

    def test_cannot_be_written(self):
        with tempfile.TemporaryDirectory() as folder:
            args = ("--prefill", "0", "--decode", "0", "--reps", "1")
            self.refused(sluice("bench", MODEL, *args, "--html", pathlib.Path(folder) / "none" / "r.html"), "none")
            self.refused(sluice("bench", MODEL, *args, "--html", folder), "regular file")
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])


class Refusals(Case):
    def test_lists(self):
        for flag in ("--prefill", "--depth", "--rows"):
            for value in ("", "x", "1,", ",1", "1,,2", "-1", "1 2", "1.5", "99999999999999999999", "2,1", "3,3", "1;2",
                          ",".join(map(str, range(1, 40)))):
                with self.subTest(flag=flag, value=value):
                    self.refused(sluice("bench", MODEL, f"{flag}={value}"), flag, status=2)
        self.refused(sluice("bench", MODEL, "--rows", "0,1"), "--rows", status=2)
        self.refused(sluice("bench", MODEL, "--rows", "65"), "--rows", status=2)
        self.refused(sluice("bench", MODEL, "--prefill", "0,8"), "--prefill", status=2)

    def test_options(self):
        self.refused(sluice("bench"), "usage", status=2)
        self.refused(sluice("bench", MODEL, "--reps", "0"), "--reps", status=2)
        self.refused(sluice("bench", MODEL, "--decode", "-1"), "--decode", status=2)
        self.refused(sluice("bench", MODEL, "--json", "--csv"), "--csv", status=2)
        self.refused(sluice("bench", MODEL, "--dept", "1"), "--depth", status=2)
        self.refused(sluice("bench", MODEL, "--depth", "100", "--ctx", "32"), "--ctx", status=2)
        self.refused(sluice("bench", MODEL, "--prefill", "33", "--decode", "1", "--depth", "0", "--ctx", "32"), "33", status=2)

    def test_files(self):
        self.refused(sluice("bench", "/nowhere.gguf"), "nowhere")
        self.refused(sluice("bench", pathlib.Path(__file__)), "test_cli_bench")


if __name__ == "__main__":
    import unittest
    unittest.main()
