# SPDX-License-Identifier: MIT
"""Prefixes of `run`: what memory and a folder keep of prompts is not computed again, and the figures say so."""
import re, resource, signal, unittest

from cli import SMOLLM2, TINY, FolderCase, chat, limit, model, sluice

MODEL, OTHER = TINY / "llama-linear-spm.gguf", TINY / "gemma3.gguf"
PROMPT = "a prompt that is long enough to fill two blocks of the cache and to begin another one, and then some more of it"


class PrefixCase(FolderCase):
    def setUp(self):
        super().setUp()
        self.disk = self.folder / "prefixes"

    def files(self):
        return sorted(self.disk.iterdir())

    def run_once(self, *more, prompt=PROMPT, path=MODEL, **limits):
        return sluice("run", path, "-p", prompt, "-n", "12", "--temp", "0", "--ctx", "512", "--json", *more, **limits)


class Disk(PrefixCase):
    def run_kept(self, *more, **args):
        out = self.ok_json(self.run_once("--kv-disk", self.disk, *more, **args))
        kv, prompt = out["kv"], out["kv"]["prompt"]
        self.assertEqual(prompt["all"], prompt["memory"] + prompt["disk"] + prompt["computed"])
        self.assertEqual(prompt["all"], len(out["prompt_ids"]))
        self.assertEqual(prompt["computed"], out["timings"]["prompt_n"])
        self.assertEqual(kv["blocks"], kv["held"] + kv["cached"] + kv["free"])
        self.assertLessEqual(kv["held"] * 32 - 31, kv["positions"])
        self.assertLessEqual(kv["positions"], kv["held"] * 32)
        return out

    def test_what_another_run_has_computed_is_not_computed(self):
        plain = self.ok_json(self.run_once())
        n = len(plain["prompt_ids"])
        first, again = self.run_kept(), self.run_kept()
        self.assertEqual(again["kv"]["disk_bytes"], sum(f.stat().st_size for f in self.files()))
        longer = self.run_kept(prompt=PROMPT + " and more")
        self.assertEqual(first["kv"]["prompt"]["disk"], 0)
        self.assertEqual(again["kv"]["prompt"]["disk"], (n - 1) // 32 * 32)
        self.assertGreaterEqual(longer["kv"]["prompt"]["disk"], 32)
        self.assertEqual(plain["ids"], first["ids"])
        self.assertEqual(plain["ids"], again["ids"])
        self.assertEqual(longer["ids"], self.ok_json(self.run_once(prompt=PROMPT + " and more"))["ids"])
        for file in self.files():
            self.assertRegex(file.name, r"\A[0-9a-f]{16}-[0-9a-f]{16}\.kv\Z")
        self.assertEqual(self.disk.stat().st_mode & 0o777, 0o700)
        self.assertEqual(self.run_kept(path=OTHER)["kv"]["prompt"]["disk"], 0)

    def test_bad_files_cost_only_the_prefix(self):
        want = self.run_kept("-n", "2")["ids"]  # no block of the answer, which no prompt asks for
        good = [f.read_bytes() for f in self.files()]
        for spoil in (lambda b: b[:len(b) // 2], lambda b: b"", lambda b: b[:-9] + bytes([b[-9] ^ 1]) + b[-8:],
                      lambda b: good[0], lambda b: b"x" * 10000):
            for file in self.files():
                file.write_bytes(spoil(file.read_bytes()))
            for _ in good:  # a bad file is found when what is before it is good
                self.assertEqual(self.run_kept("-n", "2")["ids"], want)
            self.assertEqual([f.read_bytes() for f in self.files()], good)

    def test_the_budget_is_kept(self):
        self.run_kept()
        n_bytes = sum(f.stat().st_size for f in self.files())
        (self.disk / "notes.txt").write_text("mine")
        for i in range(4):
            self.run_kept("--kv-disk-gib", 2 * n_bytes / 2**30, prompt=f"{i} {PROMPT}")
            self.assertLessEqual(sum(f.stat().st_size for f in self.files() if f.suffix == ".kv"), 2 * n_bytes)
        self.assertEqual((self.disk / "notes.txt").read_text(), "mine")
        self.assertGreaterEqual(self.run_kept(prompt=f"3 {PROMPT}")["kv"]["prompt"]["disk"], 64)

    def test_what_cannot_be_written_is_said_and_the_answer_comes(self):
        def small_files():
            limit()
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        done = self.run_once("--kv-disk", self.disk, preexec_fn=small_files)
        self.assertEqual(self.ok_json(done)["ids"], self.ok_json(self.run_once())["ids"])
        self.assertIn(b"prefixes are not kept: ", done.stderr)
        self.assertEqual(self.files(), [])

    def test_a_folder_that_cannot_be_is_refused(self):
        (self.folder / "file").write_text("")
        self.refused(self.run_once("--kv-disk", self.folder / "file"), "is no folder")
        self.refused(self.run_once("--kv-disk", self.folder / "not" / "there"), "cannot make the folder")
        self.refused(self.run_once("--kv-disk", self.disk, "--kv-disk-gib", "0"), "kv-disk-gib", status=2)


class ChatCase(PrefixCase):
    def turns(self, path, *more, n=50, seconds=300):
        """Messages of one length; the tokens that each turn computed, and what /stats said at the end."""
        lines = [f"Tell me the fact with the number {i + 10}." for i in range(n)]
        said = chat(self.folder, path, "--temp", "0", *more, lines=[*lines, "/stats", "/quit"], seconds=seconds)
        stats = re.search(r"prompts: (\d+) tokens, of them (\d+) from memory, (\d+) from disk .*, (\d+) computed", said)
        self.assertRegex(said, r"KV blocks of 32: \d+ of \d+ held, by \d+ positions; \d+ cached, \d+ free, \d+ given up")
        computed = [int(n) for n in re.findall(r"prompt (\d+) tokens", said)]
        self.assertEqual(len(computed), n)
        everything, memory, disk, rest = map(int, stats.groups())
        self.assertEqual((sum(computed), everything), (rest, memory + disk + rest))
        return computed, disk


class Chat(ChatCase):
    # Its answers are noise, which is other tokens once it is text: the last one is read again, and no more.
    def test_each_turn_computes_only_what_is_new(self):
        computed, disk = self.turns(MODEL, "-n", "4", "--ctx", "4096")
        self.assertLess(max(computed), computed[0] + 4 * 4)
        self.assertEqual(disk, 0)

    def test_a_chat_goes_on_from_the_folder(self):
        kept = ("-n", "4", "--ctx", "4096", "--kv-disk", self.disk)
        before, _ = self.turns(MODEL, *kept, n=20)
        after, disk = self.turns(MODEL, *kept, n=20)
        self.assertGreater(disk, sum(before) // 40)
        self.assertLess(sum(after), sum(before))


class RealChat(ChatCase):
    def test_each_turn_computes_its_message(self):
        computed, _ = self.turns(model(SMOLLM2), "-n", "4", "--ctx", "4096", "--threads", "1")
        self.assertLessEqual(max(computed[1:]) - min(computed[1:]), 2)
        self.assertLess(max(computed[1:]), 32)


if __name__ == "__main__":
    unittest.main()
