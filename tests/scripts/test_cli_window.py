# SPDX-License-Identifier: MIT
"""--ctx-window: a text longer than its context goes on, the same however it was computed, and a chat computes only what
is new. Without it the stop is said in words."""
import json, re, unittest

from cli import TINY, Case, FolderCase, chat, sluice

MODEL = TINY / "qwen3.gguf"
WINDOW = ("--ctx", "64", "--ctx-window")
PROMPT = "a prompt whose length is of no importance"


class Window(Case):
    def answer(self, *more, n=300, prompt=PROMPT, path=MODEL):
        bias = ("--logit-bias", "2=-1000", "--logit-bias", "1=-1000")
        return self.ok_json(sluice("run", path, "--raw", "-p", prompt, "-n", n, "--temp", "0.9", "--seed", "1", "--json",
                                   *bias, *more))

    def test_it_goes_on_through_many_contexts(self):
        for path in (MODEL, TINY / "gemma3.gguf", TINY / "llama-linear-spm.gguf"):
            out = self.answer(*WINDOW, path=path)
            self.assertEqual((out["stop"], len(out["ids"])), ("length", 300))
            self.assertEqual(out["allocations"], 0)
            n = 64 - len(out["prompt_ids"])  # as long as all is in view the context's size means nothing
            wide = self.answer("--ctx", "512", path=path)
            self.assertEqual(out["ids"][:n], wide["ids"][:n])
            self.assertNotEqual(out["ids"], wide["ids"])

    def test_it_is_the_same_however_it_was_computed(self):
        long = PROMPT * 12
        for kv in ("f16", "q8_0", "q4_0"):
            def ids(*more):
                out = self.answer(*WINDOW, "--kv", kv, *more, n=100, prompt=long)
                self.assertGreater(len(out["prompt_ids"]), 200)
                return out["ids"]
            want = ids()
            self.assertEqual(ids("--threads", "1", "--chunk", "1"), want)
            self.assertEqual(ids("--threads", "3", "--chunk", "48"), want)

    def test_the_stop_is_said_in_words(self):
        done = sluice("run", MODEL, "--raw", "-p", PROMPT, "--ctx", "64", "--logit-bias", "2=-1000", "--logit-bias", "1=-1000")
        self.ok(done)
        self.assertRegex(done.stderr.decode(), r"sluice: the context of 64 positions is full; .*--ctx-window goes on in it\n\Z")

    def test_an_answer_that_nothing_bounds(self):
        """It grows beyond what was taken for it, and ends where the model does."""
        out = self.ok_json(sluice("run", MODEL, "--raw", "-p", PROMPT, *WINDOW, "--temp", "3", "--seed", "1", "--json", "--logprobs",
                                  "2"))
        self.assertEqual(out["stop"], "eos")
        self.assertEqual(len(out["logprobs"]), len(out["ids"]))
        for id, step in zip(out["ids"], out["logprobs"]):
            self.assertEqual((step["id"], len(step["top"])), (id, 2))


class Chat(FolderCase):
    def test_a_chat_that_is_longer_than_its_context(self):
        args = (TINY / "llama-linear-spm.gguf", "--temp", "0", "-n", "8", "--ctx", "96", "--ctx-window", "--session",
                self.folder / "session")
        turns = [f"message {i}" for i in range(12)]
        seen = chat(self.folder, *args, lines=[*turns, "/stats", "/quit"])
        computed = [int(n) for n in re.findall(r"prompt (\d+) tokens", seen)]
        self.assertEqual(len(computed), len(turns))
        positions, window = map(int, re.search(r"context: (\d+) positions, in a window of (\d+)", seen).groups())
        self.assertGreater(positions, 2 * window)
        self.assertLess(max(computed[1:]), 2 * max(computed[1:4]))  # never the whole conversation
        again = chat(self.folder, *args, lines=["and more", "/quit"])
        self.assertLess(int(re.search(r"prompt (\d+) tokens", again)[1]), 2 * max(computed[1:4]))


if __name__ == "__main__":
    unittest.main()
