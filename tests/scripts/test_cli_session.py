# SPDX-License-Identifier: MIT
"""Sessions of `run`: what a file keeps is not computed again, changes nothing, and may be lost at any time."""
import json, re, unittest

from cli import TINY, FolderCase, chat, sluice

MODEL, OTHER = TINY / "llama-linear-spm.gguf", TINY / "gemma3.gguf"
PROMPT = "a prompt that is long enough to fill a block of the cache and to begin another one"


class SessionCase(FolderCase):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "session"

    def run_once(self, *more, prompt=PROMPT, path=MODEL):
        return sluice("run", path, "-p", prompt, "-n", "12", "--temp", "0", "--ctx", "512", "--json", *more)


class Session(SessionCase):
    def test_what_is_kept_is_not_computed(self):
        plain = self.ok_json(self.run_once())
        first = self.ok_json(self.run_once("--session", self.path))
        again = self.ok_json(self.run_once("--session", self.path))
        longer = self.ok_json(self.run_once("--session", self.path, prompt=PROMPT + " and more"))
        n = len(plain["prompt_ids"])
        self.assertEqual((first["timings"]["prompt_n"], again["timings"]["prompt_n"]), (n, 1))
        self.assertLess(longer["timings"]["prompt_n"], len(longer["prompt_ids"]) - n // 2)
        self.assertEqual(plain["ids"], first["ids"])
        self.assertEqual(plain["ids"], again["ids"])
        self.assertEqual(longer["ids"], self.ok_json(self.run_once(prompt=PROMPT + " and more"))["ids"])
        self.assertEqual([p.name for p in self.folder.iterdir()], ["session"])

    def test_what_cannot_be_used_costs_only_time(self):
        want = self.ok_json(self.run_once("--session", self.path))
        good = self.path.read_bytes()

        def goes_on(content, *words, **more):
            self.path.write_bytes(content)
            done = self.run_once("--session", self.path, **more)
            out = self.ok_json(done)
            lines = done.stderr.decode().splitlines()
            self.assertRegex(lines[0], r"\Asluice: .*session: .*; the session starts anew\Z")
            for word in words:
                self.assertIn(word, lines[0])
            return out
        bad = [(good[:len(good) // 2], "in the middle"), (b"", "no session"),
               (good[:-9] + bytes([good[-9] ^ 1]) + good[-8:], "checksum")]
        for content, word in bad:
            self.assertEqual(goes_on(content, word)["ids"], want["ids"])
        goes_on(good, "another model", path=OTHER)
        self.assertEqual(self.ok_json(self.run_once("--session", self.path, path=OTHER))["timings"]["prompt_n"], 1)
        kept = {p.name: p.read_bytes() for p in self.folder.iterdir() if p != self.path}
        self.assertEqual(kept, {"session.old": bad[0][0], "session.old2": bad[2][0], "session.old3": good})

    def test_what_is_no_session_is_not_replaced(self):
        for content in b"x" * 5000, b"slu", MODEL.read_bytes():
            self.path.write_bytes(content)
            self.refused_at_the_end(self.run_once("--session", self.path), "name another file")
            self.assertEqual(self.path.read_bytes(), content)
        self.refused_at_the_end(self.run_once("--session", self.folder), "folder")

    def test_what_cannot_be_written_is_said(self):
        self.refused_at_the_end(self.run_once("--session", self.folder / "no folder" / "s"), "cannot create")

    def refused_at_the_end(self, done, word):
        self.assertEqual(done.returncode, 1)
        self.assertIn(word, done.stderr.decode().splitlines()[-1])


class Talk(SessionCase):
    def talk(self, *lines, sampling=("--temp", "0"), name="session", killed=False):
        """A chat on a terminal; what it printed."""
        session = ("--session", self.path.with_name(name))
        return chat(self.folder, MODEL, *sampling, "-n", "8", "--ctx", "512", *session, lines=lines, killed=killed)

    def test_a_chat_that_was_killed_draws_as_if_it_had_not_been(self):
        """Turns of sampled answers with penalties, in one process and in one for each turn, killed at the next prompt."""
        lines = [f"message {i}" for i in range(5)]
        for seed in ("7", None):  # given each time, or kept
            sampling = ("--temp", "1.5", "--repeat-penalty", "1.3", "--presence-penalty", "0.5")
            first = sampling + ("--seed", seed or "11")
            whole = self.folder / "whole.json"
            self.talk(*lines, f"/save {whole}", "/quit", sampling=first, name=f"whole-{seed}")
            for i, line in enumerate(lines):
                self.talk(line, sampling=first if seed or i == 0 else sampling, name=f"killed-{seed}", killed=True)
            pieces = self.folder / "pieces.json"
            self.talk(f"/save {pieces}", "/quit", name=f"killed-{seed}")
            said = json.loads(whole.read_text())["messages"]
            self.assertEqual(json.loads(pieces.read_text())["messages"], said)
            answers = [m["content"] for m in said if m["role"] == "assistant"]
            self.assertEqual(len(set(answers)), 5)

    def test_a_chat_goes_on(self):
        kept = self.folder / "kept.json"
        first = self.talk("the first message is a little longer than the others", "/quit")
        self.assertEqual(len(re.findall(r"prompt \d+ tokens", first)), 1)
        computed = int(re.search(r"prompt (\d+) tokens", first)[1])
        second = self.talk("no", f"/save {kept}", "/quit")
        self.assertLess(int(re.search(r"prompt (\d+) tokens", second)[1]), computed)
        messages = json.loads(kept.read_text())["messages"]
        self.assertEqual([m["role"] for m in messages], ["user", "assistant"] * 2)
        self.assertEqual(messages[2]["content"], "no")
        done = self.run_once("--session", self.path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("a chat of 2 turns", done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
