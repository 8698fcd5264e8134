# SPDX-License-Identifier: MIT
"""Perplexity by llama-perplexity's method on real models, against an exact float model of the same files; golden/ppl/ppl.json
says where text and figures are from. No further from the exact figure than llama.cpp is."""
import json, unittest

from cli import ROOT, Case, model, sluice

GOLDEN = ROOT / "tests/golden/ppl"


def check(case, name):
    want = json.loads((GOLDEN / "ppl.json").read_text())["models"][name]
    exact, peer = want["oracle_f32"]["ppl"], want["peer"]["f16"]["ppl"]
    out = case.ok_json(sluice("eval", "ppl", model(name + ".gguf"), GOLDEN / "ppl-text.txt", "--json", seconds=900))
    case.assertEqual((out["tokens"], out["windows"]), (want["tokens"], want["windows"]))
    case.assertEqual(out["scored"], want["oracle_f32"]["scored"])
    case.assertLessEqual(abs(out["ppl"] - exact), abs(peer - exact))


class SmolLM2(Case):
    def test_perplexity(self):
        check(self, "SmolLM2-135M-Instruct.Q4_1")


class Gemma3(Case):
    def test_perplexity(self):
        check(self, "gemma-3-270m-q4_k_m")


class Qwen2(Case):
    def test_perplexity(self):
        check(self, "qwen2.5-coder-0.5b-instruct-q4_k_m")


if __name__ == "__main__":
    unittest.main()
