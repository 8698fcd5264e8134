# SPDX-License-Identifier: MIT
"""Bad files: each is one line of reason and a status that is not 0, within limits of time and memory."""
import json, os, pathlib, struct, subprocess, tempfile, unittest

from cli import SMOLLM2, TINY, Case, model, sluice
from gguf_edit import Gguf

MODEL = TINY / "llama-linear-spm.gguf"
COMMANDS = (["run", "-p", "a", "-n", "2"], ["tokenize"], ["render"], ["explain"], ["inspect"])


class BadFiles(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def refuse_all(self, path, *words, commands=COMMANDS):
        for command in commands:
            with self.subTest(command[0]):
                self.refused(sluice(command[0], path, *command[1:], stdin='{"messages": []}'), *words)

    def write(self, content):
        path = self.folder / "bad.gguf"
        path.write_bytes(content)
        return path

    def test_no_file(self):
        self.refuse_all(self.folder / "none.gguf", "none.gguf")

    def test_directory(self):
        self.refuse_all(self.folder)

    def test_empty(self):
        self.refuse_all(self.write(b""))

    def test_text(self):
        self.refuse_all(self.write(b"It is a truth universally acknowledged\n" * 100))

    def test_big_endian(self):
        little = MODEL.read_bytes()
        head = struct.unpack("<IQQ", little[4:24])
        self.refuse_all(self.write(b"GGUF" + struct.pack(">IQQ", *head) + little[24:]), "big-endian")

    def test_device_that_never_ends(self):
        self.refuse_all("/dev/zero")

    def test_no_permission(self):
        if os.geteuid() == 0:
            return  # root may read everything
        path = self.write(MODEL.read_bytes())
        path.chmod(0)
        self.refuse_all(path)

    def truncate(self, path, step):
        """Cut at every `step` bytes, and around the end of the header."""
        whole = path.read_bytes()
        header = Gguf(path).header_bytes
        cuts = {*range(0, len(whole), step), 4, 8, 23, 24, header - 1, header, header + 1, len(whole) - 1}
        for cut in sorted(cuts):
            with self.subTest(cut=cut):
                self.refused(sluice("run", self.write(whole[:cut]), "-p", "a", "-n", "1"))

    def test_truncated(self):
        self.truncate(MODEL, 4096)

    def test_truncated_real(self):
        # 24,000 cuts would take an hour; these are those of the header's beginning and some of the data
        path = model(SMOLLM2)
        header = Gguf(path).header_bytes
        size = path.stat().st_size
        with open(path, "rb") as f:
            start = f.read(header + 4096)
        for cut in [*range(4096, header, 4096 * 16), header]:
            with self.subTest(cut=cut):
                self.refused(sluice("run", self.write(start[:cut]), "-p", "a", "-n", "1"))
        path_cut = self.write(start)
        for cut in (size // 2 // 4096 * 4096, size - 4096, size - 1):  # holes for data, the last bytes missing
            os.truncate(path_cut, cut)
            with self.subTest(cut=cut):
                self.refused(sluice("run", path_cut, "-p", "a", "-n", "1"))


class WrongModels(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.gguf = Gguf(MODEL)

    def refuse(self, *words, args=("-p", "a", "-n", "2")):
        path = self.gguf.write(self.folder / "wrong.gguf")
        return self.refused(sluice("run", path, *args), *words)

    def test_unchanged_is_fine(self):
        path = self.gguf.write(self.folder / "same.gguf")
        self.ok(sluice("run", path, "-p", "a", "-n", "2"))

    def test_wrong_architecture(self):
        self.gguf.set_string("general.architecture", "perceptron")
        self.refuse("perceptron")

    def test_no_architecture(self):
        del self.gguf.kv["general.architecture"]
        self.refuse("general.architecture")

    def test_missing_tensor(self):
        for name in ("token_embd.weight", "blk.0.attn_q.weight", "output_norm.weight"):
            self.gguf = Gguf(MODEL)
            self.gguf.tensors = [t for t in self.gguf.tensors if t[0] != name]
            self.refuse(name)

    def test_wrong_shape(self):
        for tensor in self.gguf.tensors:
            if tensor[0] == "blk.0.ffn_up.weight":
                tensor[1] = tensor[1][::-1]
        self.refuse("blk.0.ffn_up.weight")

    def test_unknown_type(self):
        for tensor in self.gguf.tensors:
            if tensor[0] == "blk.0.ffn_up.weight":
                tensor[2] = 250
        self.refuse("blk.0.ffn_up.weight")

    def test_missing_tokenizer(self):
        self.gguf.kv = {k: v for k, v in self.gguf.kv.items() if not k.startswith("tokenizer.")}
        self.refuse("tokenizer")
        path = self.gguf.write(self.folder / "wrong.gguf")
        self.refused(sluice("tokenize", path, stdin="a"), "tokenizer")

    def test_unknown_pre(self):
        gguf = Gguf(model(SMOLLM2))
        gguf.set_string("tokenizer.ggml.pre", "frobnicate")
        path = gguf.write(self.folder / "pre.gguf")
        self.refused(sluice("tokenize", path, stdin="a b"), "frobnicate", "--pre")
        self.ok(sluice("tokenize", path, "--pre", "smollm", stdin="a b"))

    def test_nan_weights(self):
        self.gguf.data = self.gguf.data[:-4096] + struct.pack("<f", float("nan")) * 1024
        self.refuse("NaN", args=("-p", "a", "-n", "2", "--check"))
        path = self.gguf.write(self.folder / "nan.gguf")
        for backend in ("cpu", "ref"): # found while computing, too, and before anything is printed
            self.refused(sluice("run", path, "-p", "a", "-n", "2", "--backend", backend), "NaN", "--check")
            self.refused(sluice("eval", "ppl", path, TINY.parent.parent / "scripts" / "plain.jinja", "--ctx", "32", "--backend", backend), "NaN")

    def test_hyperparameters(self):
        for key, value in (("llama.block_count", 0), ("llama.block_count", 2**32 - 1), ("llama.attention.head_count", 0),
                           ("llama.embedding_length", 2**31), ("llama.attention.head_count_kv", 7), ("llama.context_length", 0)):
            with self.subTest(key=key, value=value):
                self.gguf = Gguf(MODEL)
                self.gguf.set_uint32(key, value)
                self.refuse()


class WrongSizes(Case):
    def test_prompt_longer_than_context(self):
        self.refused(sluice("run", MODEL, "-p", "a b c d e f g h " * 40, "--ctx", "32"), "--ctx", "32")

    def test_context_larger_than_memory(self):
        self.refused(sluice("run", model(SMOLLM2), "-p", "a", "--ctx", "2000000000"))
        self.refused(sluice("run", model(SMOLLM2), "-p", "a", "--ctx", "2147483647"))

    def test_endless_input(self):
        with open("/dev/zero", "rb") as zero:
            done = subprocess.run([str(x) for x in (os.environ["SLUICE_BIN"], "tokenize", MODEL)], stdin=zero, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=120)
        self.refused(done, "MiB")

    def test_prompt_files(self):
        self.refused(sluice("run", MODEL, "-f", "/none/prompt.txt"), "/none/prompt.txt")
        self.refused(sluice("run", MODEL, "-f", "/tmp"), "/tmp")


class BadConversations(Case):
    def test_conversations(self):
        template = TINY.parent.parent / "scripts" / "plain.jinja"
        for text in ("", "{", "[]", "null", '{"messages": 1}', '{"messages": [{"role": 1}]}', "\0", "[" * 100000):
            with self.subTest(text[:20]):
                self.refused(sluice("render", template, stdin=text))
        self.refused(sluice("render", template, "--now", "yesterday", stdin="{}"), "--now", status=2)
        fine = json.dumps({"messages": [{"role": "user", "content": "hi"}]})
        self.assertEqual(self.ok(sluice("render", template, stdin=fine)), b"<user>hi\n")


if __name__ == "__main__":
    unittest.main()
