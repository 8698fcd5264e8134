# SPDX-License-Identifier: MIT
"""Options, help, and where output goes."""
import os, pathlib, subprocess, tempfile, unittest

from cli import SLUICE, TINY, Case, limit, sluice

MODEL = TINY / "llama-linear-spm.gguf"
COMMANDS = ("run", "bench", "tokenize", "render", "explain", "inspect", "eval")


class Help(Case):
    def test_help_lists_the_commands(self):
        text = self.ok(sluice("help")).decode()
        for command in COMMANDS:
            self.assertIn(f"\n  {command} ", text)

    def test_help_of_each_command(self):
        for command in COMMANDS:
            a, b = self.ok(sluice("help", command)), self.ok(sluice(command, "--help"))
            self.assertEqual(a, b)
            self.assertTrue(a.startswith(b"usage: sluice " + command.encode()))
        self.assertIn(b"--temp", self.ok(sluice("run", "MODEL", "-h")))
        self.assertIn(b"--ids", self.ok(sluice("eval", "logits", "--help")))

    def test_version(self):
        self.assertRegex(self.ok(sluice("--version")), rb"\Asluice \d+\.\d+\.\d+\n\Z")


class Mistakes(Case):
    def test_commands(self):
        self.refused(sluice(), status=2)
        self.refused(sluice("rum"), '"rum"', "run", status=2)
        self.refused(sluice("eval", "lojits"), "logits", status=2)

    def test_unknown_options_name_the_nearest(self):
        self.refused(sluice("run", MODEL, "--tmep", "1"), "--tmep", "--temp", status=2)
        self.refused(sluice("run", MODEL, "--temperature=1"), "--temp", status=2)
        self.refused(sluice("run", MODEL, "--thread", "2"), "--threads", status=2)
        self.refused(sluice("run", MODEL, "--utterly-different"), "--help", status=2)
        self.refused(sluice("run", MODEL, "-x"), "-x", status=2)

    def test_values(self):
        for args in (["--temp", "-1"], ["--temp", "nan"], ["--temp", "hot"], ["--top-p=1.5"], ["--top-k", "2.5"], ["-n", "x"],
                     ["--ctx", "-1"], ["--ctx", "99999999999"], ["--threads=100000"], ["--seed", "-1"], ["--kv", "f64"],
                     ["--backend", "gpu"], ["--raw=yes"], ["--logit-bias"]):
            with self.subTest(args):
                name = "--max-tokens" if args[0] == "-n" else args[0].split("=")[0]
                self.refused(sluice("run", MODEL, *args), name, status=2)

    def test_combinations(self):
        self.refused(sluice("run", MODEL, "-p", "a", "-f", "b"), "-p", status=2)
        self.refused(sluice("run", MODEL, "-p", "a", "--logprobs", "1"), "--json", status=2)
        self.refused(sluice("run", MODEL, "second"), "second", status=2)
        self.refused(sluice("run"), "usage", status=2)
        self.refused(sluice("run", MODEL, "--raw", "-p", "a", "--logit-bias", "1"), "ID=V", status=2)
        self.refused(sluice("run", MODEL, "--raw", "-p", "a", "--logit-bias", "99999999=1"), "99999999", status=2)


class Output(Case):
    """A program that cannot write says so; it does not end well, and not by a signal."""
    RUNS = (["help"], ["--version"], ["run", "--help"], ["inspect", str(MODEL)], ["explain", str(MODEL)], ["tokenize", str(MODEL)],
            ["run", str(MODEL), "-p", "a", "-n", "4"], ["run", str(MODEL), "-p", "a", "-n", "4", "--json"])

    def test_full_disk(self):
        for args in self.RUNS:
            with self.subTest(args), open("/dev/full", "wb") as full:
                self.refused(sluice(*args, stdout=full), "standard output")

    def test_closed_stdout(self):
        for args in self.RUNS:
            with self.subTest(args):
                done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", SLUICE, *args], stdin=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, timeout=60, preexec_fn=limit)
                done.stdout = None
                self.refused(done, "standard output")

    def test_reader_that_left(self):
        for args in self.RUNS:
            with self.subTest(args):
                read_end, write_end = os.pipe()
                os.close(read_end)
                with os.fdopen(write_end, "wb") as pipe:
                    self.refused(sluice(*args, stdout=pipe), "standard output")

    def test_no_partial_file(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            ids = folder / "ids.json"
            for text in ("[1, 2, 99999999]", "[1, -1]", "[1.5]", "[]", "{}", "[1", "", '"x"', "[[1]]"):
                ids.write_text(text)
                self.refused(sluice("eval", "logits", MODEL, "--ids", ids, "--out", folder / "out.npy"), "ids.json")
            ids.write_text("[1, 2, 3]")
            self.refused(sluice("eval", "logits", MODEL, "--ids", ids, "--out", folder / "none" / "out.npy"), "none")
            self.refused(sluice("eval", "logits", MODEL, "--ids", ids, "--out", folder), "regular file")
            self.refused(sluice("eval", "logits", MODEL, "--ids", ids, "--out", "/dev/full"), "regular file")
            self.assertEqual([p.name for p in folder.iterdir()], ["ids.json"])


if __name__ == "__main__":
    unittest.main()
