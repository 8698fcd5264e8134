# SPDX-License-Identifier: MIT
"""What the commands print when all is well."""
import array, json, os, pathlib, pty, select, signal, struct, subprocess, tempfile, time, unittest

from cli import ROOT, SLUICE, SMOLLM2, TINY, Case, model, sluice

MODEL = TINY / "llama-linear-spm.gguf"
KEYS = {"text", "prompt_ids", "ids", "stop", "seed", "timings", "kv", "n_threads", "allocations", "faults"}
TIMINGS = {"load_ms", "ttft_ms", "prompt_n", "prompt_ms", "prompt_tok_s", "decode_n", "decode_ms", "decode_tok_s", "token_p50_ms",
           "token_p99_ms", "token_max_ms"}


def read_npy(path):
    content = path.read_bytes()
    assert content[:8] == b"\x93NUMPY\x01\0" and content.index(b"\n") == 127, content[:128]
    head = content[10:128].decode()
    assert "'descr': '<f4'" in head and "'fortran_order': False" in head, head
    shape = tuple(int(n) for n in head.split("(")[1].split(")")[0].split(",") if n.strip())
    values = array.array("f", content[128:])
    assert len(values) == shape[0] * shape[1]
    return shape, values


class Run(Case):
    def test_json(self):
        out = self.ok_json(sluice("run", MODEL, "-p", "hello", "-n", "8", "--json", "--logprobs", "3", "--seed", "5"))
        self.assertEqual(set(out), KEYS | {"logprobs"})
        self.assertEqual(set(out["timings"]), TIMINGS)
        self.assertEqual(out["timings"]["prompt_n"], len(out["prompt_ids"]))
        self.assertEqual(out["seed"], 5)
        self.assertIn(out["stop"], ("eos", "length"))
        self.assertEqual(len(out["logprobs"]), len(out["ids"]))
        for token, step in zip(out["ids"], out["logprobs"]):
            self.assertEqual(step["id"], token)
            top = [logprob for _, logprob in step["top"]]
            self.assertEqual(len(top), 3)
            self.assertEqual(top, sorted(top, reverse=True))
            for id, logprob in step["top"]:
                if id == token:
                    self.assertEqual(logprob, step["logprob"])

    def test_seed_repeats(self):
        def ids(seed):
            return self.ok_json(sluice("run", MODEL, "-p", "hello", "-n", "16", "--json", "--temp", "2", "--seed", seed))["ids"]
        self.assertEqual(ids(1), ids(1))
        self.assertNotEqual(ids(1), ids(2))

    def test_prompt_sources_agree(self):
        def ids(*args, stdin=b""):
            return self.ok_json(sluice("run", MODEL, "-n", "4", "--temp", "0", "--json", *args, stdin=stdin))["prompt_ids"]
        with tempfile.NamedTemporaryFile() as f:
            f.write(b"hello there")
            f.flush()
            self.assertEqual(ids("-p", "hello there"), ids("-f", f.name))
        self.assertEqual(ids("-p", "hello there"), ids(stdin="hello there"))
        self.assertEqual(ids("--prompt=hello there"), ids("-phello there"))

    def test_stops(self):
        out = self.ok_json(sluice("run", MODEL, "-p", "a", "-n", "3", "--json", "--temp", "0", "--logit-bias", "2=-1000"))
        self.assertEqual((out["stop"], len(out["ids"])), ("length", 3))
        out = self.ok_json(sluice("run", MODEL, "-p", "a", "-n", "0", "--json"))
        self.assertEqual((out["stop"], out["ids"], out["text"]), ("length", [], ""))
        out = self.ok_json(sluice("run", MODEL, "-p", "a", "--ctx", "16", "--json", "--temp", "0", "--logit-bias", "2=-1000"))
        self.assertEqual((out["stop"], len(out["prompt_ids"]) + len(out["ids"])), ("context", 17))

    def test_bias_forces_a_token(self):
        out = self.ok_json(sluice("run", MODEL, "-p", "a", "-n", "3", "--json", "--temp", "0", "--logit-bias", "77=1000"))
        self.assertEqual(out["ids"], [77] * 3)

    def test_text_is_what_json_says(self):
        args = ("run", MODEL, "-p", "hello", "-n", "12", "--temp", "0", "--raw")
        done = sluice(*args)
        text = self.ok(done).decode(errors="replace")
        self.assertEqual(text, self.ok_json(sluice(*args, "--json"))["text"] + "\n")
        self.assertRegex(done.stderr.decode(), r"\Aload .*first token .*tok/s.*p99.*\n\Z")

    def test_greedy_as_recorded(self):
        """The first recorded prompts, until the recorded answer was close to another."""
        recorded = json.loads((ROOT / "tests/golden/peer/greedy-SmolLM2-135M-Instruct.Q4_1.json").read_text())
        for prompt in recorded["prompts"][:4]:
            with self.subTest(prompt["name"]):
                out = self.ok_json(sluice("run", model(SMOLLM2), "-p", prompt.get("prompt", prompt["text"]), "--raw", "-n", "64",
                                          "--temp", "0", "--json"))
                self.assertEqual(out["prompt_ids"], prompt["ids"])
                sure = next((i for i, gap in enumerate(prompt["oracle"]["gap"]) if gap < 0.3), 64)
                self.assertEqual(out["ids"][:sure], prompt["oracle"]["ids"][:sure])
                self.assertEqual((out["allocations"], out["faults"]["major"]), (0, 0))

    def test_chat_template(self):
        out = self.ok_json(sluice("run", model(SMOLLM2), "-p", "Say hello.", "-n", "48", "--temp", "0", "--json"))
        ids = json.dumps(out["prompt_ids"])
        rendered = self.ok(sluice("tokenize", model(SMOLLM2), "--decode", "--special", stdin=ids)).decode()
        conversation = json.dumps({"messages": [{"role": "user", "content": "Say hello."}], "add_generation_prompt": True})
        self.assertEqual(rendered, self.ok(sluice("render", model(SMOLLM2), stdin=conversation)).decode())
        self.assertEqual(out["stop"], "eos")
        self.assertNotIn("<|im_end|>", out["text"])

    def test_interrupt(self):
        args = [SLUICE, "run", str(model(SMOLLM2)), "--raw", "-p", "1 2 3 4", "--temp", "1", "--logit-bias", "2=-1000",
                "--logit-bias", "0=-1000"]
        run = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = os.read(run.stdout.fileno(), 1)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 130)
        self.assertTrue(first)
        self.assertIn(b"interrupted", err)


class Chat(Case):
    """On a pseudo-terminal, as a person would."""

    def begin(self, *options):
        self.home = tempfile.TemporaryDirectory()
        self.addCleanup(self.home.cleanup)
        environment = {**os.environ, "HOME": self.home.name, "TERM": "dumb"}
        environment.pop("XDG_STATE_HOME", None)
        path = str(model(SMOLLM2))
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.execve(SLUICE, [SLUICE, "run", path, "--temp", "0", "-n", "24", "--ctx", "256", *options], environment)
            finally:
                os._exit(127)
        self.addCleanup(self.end)
        self.seen = b""
        self.expect(b"> ")

    def end(self):
        os.close(self.fd)
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass

    def expect(self, word, seconds=60):
        """Reads on until `word` comes; returns what came before it."""
        deadline = time.monotonic() + seconds
        while word not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0, deadline - time.monotonic()))
            try:
                more = os.read(self.fd, 4096) if ready else b""
            except OSError:
                more = b""
            self.assertTrue(more, f"{word} did not come; {self.seen[-500:]} did")
            self.seen += more
        before, _, self.seen = self.seen.partition(word)
        return before

    def say(self, line, answer=b""):
        """Sends a line, waits for the answer and then for the next prompt; returns what stood before the answer."""
        os.write(self.fd, line + b"\n")
        self.expect(line.split(b"\n")[0][:20])  # its echo
        before = self.expect(answer) if answer else b""
        self.expect(b"\n> ")
        return before

    def left(self, seconds=60):
        """The program has ended well."""
        deadline = time.monotonic() + seconds
        while (ended := os.waitpid(self.pid, os.WNOHANG)) == (0, 0):
            self.assertLess(time.monotonic(), deadline, "the program goes on")
            time.sleep(0.01)
        self.assertEqual(ended[1], 0)

    def test_commands_and_memory(self):
        self.begin()
        def computed(line):
            return int(self.say(line, b" tokens,").rpartition(b"prompt ")[2])

        # The second turn computes only what is new: less than the first, which had the template's system message too.
        first = computed(b"My name is Ada. Say it.")
        self.assertLess(computed(b"And again."), first)
        for line, answer in ((b"/help", b"/retry"), (b"/frob", b"no command /frob"), (b"/stats", b" 4 messages"), (b"/undo", b""),
                             (b"/stats", b" 2 messages"), (b"/clear", b""), (b"/stats", b" 0 messages"),
                             (b"/retry", b"nothing to answer")):
            self.say(line, answer)
        self.say(b"first\\\nsecond", b"tok/s")
        self.say(b'"""\none\ntwo\n"""', b"tok/s")
        saved = pathlib.Path(self.home.name, "saved.json")
        self.say(b"/save " + bytes(saved))
        said = [m["content"] for m in json.loads(saved.read_text())["messages"] if m["role"] == "user"]
        self.assertEqual(said, ["first\nsecond", "one\ntwo"])
        os.write(self.fd, b"/quit\n")
        self.left()
        history = pathlib.Path(self.home.name, ".local/state/sluice/history")
        self.assertIn("My", history.read_text())
        self.assertEqual(history.stat().st_mode & 0o077, 0)

    def test_context_full(self):
        self.begin()
        self.say(b"word " * 300, b"/clear starts anew")
        self.say(b"/stats", b" 0 messages")  # it was not taken
        self.say(b"Hello", b"tok/s")

    def test_keys(self):
        self.begin()
        os.write(self.fd, b"a half-written line\x03")
        self.expect(b"\n> ")
        self.say(b"/stats", b" 0 messages")
        os.write(self.fd, b"\x04")
        self.left()

    def test_interrupted_answer(self):
        self.begin()
        os.write(self.fd, b"Count from one to twenty.\n")
        self.expect(b"twenty.\r\n")
        self.expect(b"The ")  # the answer has begun
        os.write(self.fd, b"\x03")
        self.expect(b"\n> ")
        self.say(b"/stats", b" 2 messages")

    def test_interrupted_prompt(self):
        self.begin("--backend", "ref", "--chunk", "4")  # slow enough for a bar
        os.write(self.fd, b"Hello " * 100 + b"\n")
        self.expect(b"prompt [")
        os.write(self.fd, b"\x03")
        self.expect(b"message was not taken")
        self.expect(b"\n> ")
        self.say(b"/stats", b" 0 messages")


class Others(Case):
    def test_tokenize_round_trip(self):
        for text in (b"", b"Hello,  world!\n\t12345", "Grüße, 東京 🏳️‍🌈".encode(), b"\xc3(\0broken\xe6\x9d\xed\xa0\x80", b"<|im_start|>"):
            ids = self.ok(sluice("tokenize", model(SMOLLM2), stdin=text))
            self.assertEqual(self.ok(sluice("tokenize", model(SMOLLM2), "--decode", "--special", stdin=ids)), text)
        self.assertEqual(self.ok_json(sluice("tokenize", model(SMOLLM2), "--special", stdin="<|im_start|>")), [1])
        self.assertGreater(len(self.ok_json(sluice("tokenize", model(SMOLLM2), stdin="<|im_start|>"))), 1)

    def test_tokenize_a_lot(self):
        text = b"It was the best of times. " * 100000
        start = time.monotonic()
        ids = self.ok_json(sluice("tokenize", model(SMOLLM2), stdin=text))
        self.assertLess(time.monotonic() - start, 20)
        self.assertGreater(len(ids), 500000)

    def test_tokenize_refuses(self):
        for ids in ("[1, 2", "[-1]", "[1e9]", "[999999999]", '["a"]', "{}"):
            self.refused(sluice("tokenize", MODEL, "--decode", stdin=ids), "standard input")

    def test_inspect(self):
        shown = self.ok_json(sluice("inspect", MODEL, "--json"))
        self.assertIn("llama", json.dumps(shown))
        self.assertIn(b"token_embd.weight", self.ok(sluice("inspect", MODEL)))
        self.assertGreater(len(self.ok(sluice("inspect", MODEL, "--full"))), len(self.ok(sluice("inspect", MODEL))))

    def test_explain(self):
        self.ok_json(sluice("explain", MODEL, "--json"))
        self.assertIn(b"norm", self.ok(sluice("explain", MODEL)))

    def test_eval_logits(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            ids = folder / "ids.json"
            ids.write_text(json.dumps({"ids": [1, 5, 9, 40, 41, 42]}))
            made = {}
            for backend, chunk in (("ref", 4), ("cpu", 1), ("cpu", 5)):
                out = folder / f"{backend}{chunk}.npy"
                self.ok(sluice("eval", "logits", MODEL, "--ids", ids, "--out", out, "--backend", backend, "--chunk", chunk))
                shape, made[backend, chunk] = read_npy(out)
                self.assertEqual(shape[0], 6)
            self.assertEqual(made["cpu", 1], made["cpu", 5])
            worst = max(abs(a - b) for a, b in zip(made["ref", 4], made["cpu", 1]))
            self.assertLess(worst, 0.1)
            self.assertEqual(sorted(p.name for p in folder.iterdir()), ["cpu1.npy", "cpu5.npy", "ids.json", "ref4.npy"])

    def test_eval_ppl(self):
        text = (b"In the beginning the heaven and the earth were made, and there was light. " * 30)
        with tempfile.NamedTemporaryFile() as f:
            f.write(text)
            f.flush()
            out = self.ok_json(sluice("eval", "ppl", model(SMOLLM2), f.name, "--ctx", "128", "--json"))
            n = len(self.ok_json(sluice("tokenize", model(SMOLLM2), "--bos", stdin=text)))
            self.assertEqual((out["tokens"], out["windows"], out["scored"]), (n, n // 128, n // 128 * 63))
            self.assertLess(out["ppl"], 10)  # it says the same all the time
            self.refused(sluice("eval", "ppl", model(SMOLLM2), f.name, "--ctx", "4096"), "window")


if __name__ == "__main__":
    unittest.main()
