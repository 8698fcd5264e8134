# SPDX-License-Identifier: MIT
"""sluice-synth: files of every family and type run, their weights have the scale that they should, and mixes are laid out as
real files are."""
import array, json, math, os, pathlib, subprocess, tempfile

from cli import SLUICE, TINY, Case, limit, sluice

SYNTH = pathlib.Path(os.environ.get("SLUICE_SYNTH") or pathlib.Path(SLUICE).parent.parent / "tools/sluice-synth")
FAMILIES = ("llama", "qwen2", "qwen3", "gemma2", "gemma3")
TYPES = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K_M", "Q5_K_M", "Q6_K", "Q2_K", "Q3_K", "Q4_K", "Q5_K",
         "IQ4_NL", "IQ4_XS", "MXFP4")
SMALL = ("--shape", "tiny", "--embd", 256, "--layers", 2, "--heads", 4, "--heads-kv", 2, "--head-dim", 64, "--ff", 512, "--vocab", 2000)


def synth(*args):
    return subprocess.run([SYNTH, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, timeout=120, preexec_fn=limit)


class SynthCase(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "m.gguf"

    def make(self, *args, shape=SMALL):
        self.ok(synth(*shape, *args, "-o", self.path))
        return self.path

    def logits(self, *args):
        ids, out = self.folder / "ids.json", self.folder / "l.npy"
        ids.write_text(json.dumps([(i * 7919) % 2000 for i in range(12)]))
        self.ok(sluice("eval", "logits", self.path, "--ids", ids, "--out", out, *args))
        values = array.array("f")
        values.frombytes(out.read_bytes()[128:])
        return values

    def types(self):
        return {t["name"]: t["type"] for t in self.ok_json(sluice("inspect", self.path, "--json"))["tensors"]}


class Families(SynthCase):
    """The final norm gives vectors with an rms of 1, so rows of standard deviation 1/sqrt(n) give logits of 1."""

    def check(self, family):
        for kind in TYPES:
            with self.subTest(kind):
                self.make("--arch", family, "--type", kind)
                values = self.logits()
                rms = math.sqrt(math.fsum(v * v for v in values) / len(values))
                self.assertTrue(0.9 < rms < 1.1, rms)  # 24,000 logits: 1 % by chance, a few by the jitter of scales
                mean = math.fsum(values) / len(values)
                self.assertLess(abs(mean), 0.1)

    def test_llama(self): self.check("llama")
    def test_qwen2(self): self.check("qwen2")
    def test_qwen3(self): self.check("qwen3")
    def test_gemma2(self): self.check("gemma2")
    def test_gemma3(self): self.check("gemma3")


class Layout(SynthCase):
    def test_mix(self):
        self.make("--type", "Q4_K_M", "--layers", 16)
        types = self.types()
        more = [i for i in range(16) if i < 2 or i >= 14 or (i - 2) % 3 == 2]
        for i in range(16):
            self.assertEqual(types[f"blk.{i}.attn_q.weight"], "Q4_K")
            for name in ("attn_v", "ffn_down"):
                self.assertEqual(types[f"blk.{i}.{name}.weight"], "Q6_K" if i in more else "Q4_K", (name, i))
        self.assertEqual((types["output.weight"], types["token_embd.weight"]), ("Q6_K", "Q4_K"))
        self.make("--type", "Q4_K_M", "--tied", 1)
        types = self.types()
        self.assertNotIn("output.weight", types)
        self.assertEqual(types["token_embd.weight"], "Q6_K")

    def test_rows_that_no_block_fits(self):
        self.make("--type", "Q4_K_M", "--embd", 96, "--head-dim", 24)
        types = self.types()
        self.assertEqual(types["blk.0.attn_q.weight"], "Q5_0")
        self.assertEqual(types["blk.0.ffn_down.weight"], "Q4_K")  # its rows are 512 long
        self.assertEqual(types["output.weight"], "Q8_0")
        self.assertTrue(all(map(math.isfinite, self.logits())))

    def test_seed(self):
        def data(seed):
            return self.make("--type", "Q4_K", "--seed", seed).read_bytes()
        self.assertEqual(data(1), data(1))
        self.assertNotEqual(data(1), data(2))

    def test_vocabulary(self):
        for source in ("llama-linear-spm", "qwen2"):
            with self.subTest(source):
                real = TINY / f"{source}.gguf"
                if not real.is_file():
                    continue
                self.make("--type", "Q8_0", "--vocab-from", real)
                ours, theirs = (self.ok_json(sluice("tokenize", m, stdin="Hello, world")) for m in (self.path, real))
                self.assertEqual(ours, theirs)
                self.ok(sluice("run", self.path, "-p", "Hello", "-n", 4, "--raw"))
                self.assertEqual(self.ok_json(sluice("inspect", self.path, "--json"))["tensors"][0]["shape"][-1], 2000)


class Refusals(SynthCase):
    def test_refusals(self):
        for args in ([], ["--shape", "tiny"], [*SMALL], [*SMALL, "--type", "Q8_0"], ["--shape", "huge", "--type", "Q8_0", "-o", self.path],
                     [*SMALL, "--type", "Q9", "-o", self.path], [*SMALL, "--type", "Q8_0", "--arch", "bert", "-o", self.path],
                     [*SMALL, "--type", "Q8_0", "--layers", "0", "-o", self.path],
                     [*SMALL, "--type", "Q8_0", "--heads", "3", "-o", self.path],
                     [*SMALL, "--type", "Q8_0", "-o", self.path, "more"], [*SMALL, "--type", "Q8_0", "--embd", "-1", "-o", self.path],
                     [*SMALL, "--type", "Q8_0", "-o", self.folder / "none" / "m.gguf"],
                     [*SMALL, "--type", "Q8_0", "--vocab-from", "/nowhere.gguf", "-o", self.path],
                     [*SMALL, "--type", "Q8_0", "--vocab-from", pathlib.Path(__file__), "-o", self.path]):
            with self.subTest([str(a) for a in args]):
                done = synth(*args)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr.decode(), r"\A[^\n]*sluice-synth: [^\n]+\n\Z")
                self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    import unittest
    unittest.main()
