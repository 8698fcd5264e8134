# SPDX-License-Identifier: MIT
"""sluice quantize and sluice imatrix from outside: files, refusals, and a run that is killed."""
import json, os, pathlib, signal, struct, subprocess, tempfile, time, unittest

from cli import Case, SLUICE, SMOLLM2, TINY, limit, model, sluice

TINY_LLAMA = next(iter(sorted(TINY.glob("llama*.gguf"))), None)


class QuantizeCase(Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def at(self, name):
        return pathlib.Path(self.folder.name) / name

    def types(self, path):
        tensors = json.loads(self.ok(sluice("inspect", path, "--json")))["tensors"]
        return {t["name"]: t["type"] for t in tensors}


class Files(QuantizeCase):
    def test_every_mix_loads_and_generates(self):
        f16 = self.at("f16.gguf")
        self.ok(sluice("quantize", TINY_LLAMA, "F16", f16))
        for mix in ("F32", "BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_1", "Q4_K_M", "Q4_0", "IQ4_NL", "IQ4_XS", "MXFP4",
                    "Q3_K_M", "Q2_K"):
            with self.subTest(mix=mix):
                out = self.at(f"{mix}.gguf")
                done = self.ok_json(sluice("quantize", f16, mix, out, "--json"))
                self.assertEqual(done["mix"], mix)
                self.assertEqual({t["name"]: t["to"] for t in done["tensors"]}, self.types(out))
                run = sluice("run", out, "-p", "a", "--raw", "-n", "4", "--temp", "0", "--json")
                self.assertEqual(len(self.ok_json(run)["ids"]), 4)

    def test_dry_run_says_what_a_run_does(self):
        out = self.at("out.gguf")
        plan = self.ok_json(sluice("quantize", TINY_LLAMA, "q4_k_m", "--dry-run", "--json"))
        self.assertFalse(out.exists())
        real = self.ok_json(sluice("quantize", TINY_LLAMA, "Q4_K_M", out, "--json"))
        self.assertEqual(plan["tensors"], real["tensors"])
        self.assertEqual(plan["out_bytes"], real["out_bytes"])
        text = self.ok(sluice("quantize", TINY_LLAMA, "Q4_K_M", "--dry-run")).decode()
        self.assertIn("bits a weight", text)

    def test_metadata_is_kept(self):
        out = self.at("out.gguf")
        self.ok(sluice("quantize", TINY_LLAMA, "Q8_0", out))
        before, after = (json.loads(self.ok(sluice("inspect", p, "--json", "--full")))["metadata"]
                         for p in (TINY_LLAMA, out))
        self.assertEqual(after.pop("general.file_type")["value"], 7)
        self.assertEqual(after.pop("general.quantization_version")["value"], 2)
        for key in ("general.file_type", "general.quantization_version"):
            before.pop(key, None)
        self.assertEqual(before, after)

    def test_quantised_already_is_said(self):
        once, twice = self.at("once.gguf"), self.at("twice.gguf")
        self.ok(sluice("quantize", TINY_LLAMA, "Q8_0", once))
        text = self.ok(sluice("quantize", once, "Q4_0", twice)).decode()
        self.assertIn("quantised already", text)

    def test_types_of_single_tensors(self):
        out = self.at("out.gguf")
        self.ok(sluice("quantize", TINY_LLAMA, "Q4_0", out, "--embedding-type", "f16", "--pure"))
        types = self.types(out)
        self.assertEqual(types["token_embd.weight"], "F16")
        self.assertEqual(types["blk.0.attn_q.weight"], "Q4_0")


class Refusals(QuantizeCase):
    def test_one_sentence_each(self):
        out = self.at("out.gguf")
        for args, words in (
            (("Q4_K_X", out), ["no mix 'Q4_K_X'"]),
            (("Q8_0", out, "--output-type", "Q9"), ["no type 'Q9'"]),
            (("Q8_0", out, "--imatrix", self.at("none")), ["cannot open"]),
            (("Q8_0", out, "--imatrix", TINY_LLAMA), ["no importance matrix"]),
            (("Q8_0", TINY_LLAMA), ["another file"]),
            (("Q8_0", self.folder.name), ["is a folder"]),
            (("Q8_0", self.at("no/such/folder.gguf")), ["cannot create"]),
        ):
            with self.subTest(args=args):
                self.refused(sluice("quantize", TINY_LLAMA, *args), *words)
                self.assertFalse(out.exists())
        self.refused(sluice("quantize", TINY_LLAMA, "Q8_0"), "OUT is missing", status=2)
        self.refused(sluice("quantize", TINY_LLAMA, "Q8_0", out, "--threads", "0"), "--threads", status=2)
        self.refused(sluice("quantize", self.at("none.gguf"), "Q8_0", out), "No such file")

    def test_the_input_under_another_name(self):
        link = self.at("link.gguf")
        link.symlink_to(TINY_LLAMA)
        before = TINY_LLAMA.read_bytes()
        self.refused(sluice("quantize", TINY_LLAMA, "Q8_0", link), "another file")
        self.assertEqual(TINY_LLAMA.read_bytes(), before)

    def test_a_disk_that_is_full(self):
        def small_disk():
            import resource

            limit()
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

        out = self.at("out.gguf")
        self.refused(sluice("quantize", TINY_LLAMA, "F16", out, preexec_fn=small_disk), "cannot write")
        self.assertEqual(os.listdir(self.folder.name), [])


class Killed(QuantizeCase):
    def test_no_half_file_has_the_name(self):
        """An old file stays whole when the run that would replace it is killed in the middle."""
        out = self.at("out.gguf")
        out.write_bytes(b"old")
        run = subprocess.Popen([SLUICE, "quantize", model(SMOLLM2), "Q2_K", out, "-t", "1"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and run.poll() is None:
            if any(p.stat().st_size > 1 << 20 for p in out.parent.glob("*.tmp-*")):
                break
            time.sleep(0.01)
        self.assertIsNone(run.poll(), "it ended before it could be killed")
        run.kill()
        self.assertEqual(run.wait(), -signal.SIGKILL)
        self.assertEqual(out.read_bytes(), b"old")


class Imatrix(QuantizeCase):
    TEXT = "One two three four five six seven eight nine ten. " * 40

    def setUp(self):
        super().setUp()
        self.text, self.matrix = self.at("text"), self.at("imatrix.gguf")
        self.text.write_text(self.TEXT)

    def test_collected_and_used(self):
        done = sluice("imatrix", TINY_LLAMA, self.text, "-o", self.matrix, "--ctx", "64", "--json")
        self.assertGreater(self.ok_json(done)["windows"], 1)
        names = self.types(self.matrix)
        self.assertIn("blk.0.ffn_down.weight.in_sum2", names)
        self.assertIn("blk.0.attn_q.weight.counts", names)
        plain, weighted = self.at("plain.gguf"), self.at("weighted.gguf")
        self.ok(sluice("quantize", TINY_LLAMA, "Q4_0", plain))
        report = self.ok_json(sluice("quantize", TINY_LLAMA, "Q4_0", weighted, "--imatrix", self.matrix, "--json"))
        self.assertEqual(report["n_without_importance"], 0)
        self.assertNotEqual(plain.read_bytes(), weighted.read_bytes())
        self.ok(sluice("run", weighted, "-p", "a", "--raw", "-n", "4", "--temp", "0"))

    def test_the_backends_agree(self):
        other = self.at("ref.gguf")
        for path, backend in ((self.matrix, "cpu"), (other, "ref")):
            self.ok(sluice("imatrix", TINY_LLAMA, self.text, "-o", path, "--ctx", "64", "--chunks", "2",
                           "--backend", backend))
        ours, sums = self.sums(other), self.sums(self.matrix)
        self.assertEqual(ours.keys(), sums.keys())
        for name, values in sums.items():  # activations of 16 bits against doubles
            for got, want in zip(values, ours[name]):
                self.assertAlmostEqual(got, want, delta=0.02 * want + 1e-3 * max(values), msg=name)

    def sums(self, path):
        """Values of each tensor, all F32."""
        data, result = path.read_bytes(), {}
        for t in json.loads(self.ok(sluice("inspect", path, "--json")))["tensors"]:
            result[t["name"]] = struct.unpack_from(f"<{t['n_bytes'] // 4}f", data, t["file_off"])
        return result

    def test_a_text_shorter_than_a_window(self):
        self.text.write_text("short")
        self.refused(sluice("imatrix", TINY_LLAMA, self.text, "-o", self.matrix), "less than one window")
        self.assertFalse(self.matrix.exists())


if __name__ == "__main__":
    unittest.main()
