#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/tokenizer/vectors.txt: strings with their ids, by the models' own algorithms.

usage: make_tokenizer_vectors.py MODEL_DIR [PEER_DIR] > tests/golden/tokenizer/vectors.txt

The references are Hugging Face `tokenizers` (BPE) and `sentencepiece` (SPM), rebuilt from the vocabulary in the GGUF file.
With PEER_DIR its tok-*.json strings are taken in too. A line is: file, p(lain) or s(pecial tokens parsed), text, ids. The
text is hexadecimal, or hexadecimal*count; then instead of ids there is n=COUNT fnv=HASH (FNV-1a 64 over little-endian ids).
Needs: gguf tokenizers sentencepiece protobuf.
"""
import glob
import json
import struct
import sys

import gguf
from sentencepiece import SentencePieceProcessor
from sentencepiece import sentencepiece_model_pb2 as spm_pb2
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
MODELS = ["SmolLM2-135M-Instruct.Q4_1", "gemma-3-270m-q4_k_m", "qwen2.5-coder-0.5b-instruct-q4_k_m",
          "qwen2.5-coder-1.5b-instruct-q4_k_m"]

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")

TEXTS = [
    "", " ", "\n", "a", "  a", "a  ", "\t\t\tif (x) {\n\t\t\t\treturn;\n\t\t\t}\n", "\r\n\r\n", " \n \n\n  \n x",
    "#include <stdio.h>\nint main(void) { printf(\"%d\\n\", 0x7fff & ~1u); return 0; }\n",
    "fn main() -> Result<(), Box<dyn Error>> { let v: Vec<_> = (0..10).map(|x| x * x).collect(); Ok(()) }",
    "SELECT a.b, COUNT(*) FROM \"t\" AS a WHERE a.c IN ('x', 'y') GROUP BY 1 HAVING COUNT(*) > 10;--",
    "<div class=\"a-b\" data-x='{\"k\":[1,2,{}]}'>&nbsp;&lt;</div>", "    def f(self, *args, **kwargs):\n        pass\n",
    "user@example.com https://example.com/a?b=c&d=%20e#f C:\\Temp\\x.txt ~/.bashrc ../../..",
    "0 00 007 1234567890 3.14159 1e-10 0b1010 1,234,567.89 ½ ² Ⅷ ٣٤٥ ๒๕๖๙ 𝟘𝟙",
    "人工智能正在改变世界，2025年的发展令人瞩目。「引用」《书名》", "昨日、私は東京タワーへ行きました。ｶﾀｶﾅ ＡＢＣ１２３",
    "안녕하세요 세계! 자모: ㄱㄴㄷ 결합: 한글", "𠀀𠮷𩸽 〇〡⼀", "Ωμέγα ελληνικά ΣΊΣΥΦΟΣ", "Ещё ЁЛКА щёлк",
    "שָׁלוֹם עֲלֵיכֶם", "السَّلامُ عَلَيْكُم ٢٠٢٥", "हिन्दी में क्षत्रिय श्री", "ไทยไม่มีช่องว่าง", "မြန်မာဘာသာ", "ខ្មែរ",
    "👩‍👩‍👧‍👦 👨🏿‍🚒 🏳️‍🌈 🏴󠁧󠁢󠁥󠁮󠁧󠁿 1️⃣ ❤️ ☺ 🫠", "e\u0301 a\u0328\u0301 o\u0302\u0323 \u1e69 s\u0323\u0307 \u212b \ufb01 \u2126",
    "q\u0307\u0323\u0323\u0307 Z\u0351\u036b\u0343\u036a\u0302", "\u202eevil\u202c \u200fx\u200e \u2066a\u2069",
    "a\u00adb\u200bc\u200cd\u2060e\ufefff", "\u00a0\u2003\u3000\u2028\u2029\u0085\u180e\u1680x", "\x00\x01\x07\x08\x0b\x0c\x1b[31m\x7f",
    "It's WE'LL they'Ve i'M can't 'sup ''' 'ſ o’clock", "---===***///\\\\\\ :-) <3 ^_^ ... !?!? $$$ @@@", "aAbBcC XMLHttpRequest snake_case kebab-case",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft", "ffiﬃ ŉ ǅ ﷺ ẞ İıIi", "\ue000\uf8ff\ufffd\ufffe\U0010ffff\ufdd0",
    "<|im_start|>user\nhi<|im_end|>\n<|endoftext|>", "<bos><start_of_turn>user\nhi<end_of_turn>\n<eos>", "</s><s><unk><pad>", "<tool_call>{}</tool_call>",
    "<|im_start|><|im_start|", "<<|im_end|>>", "▁a ▁▁ b▁", "<0x41><0xE2>", "\n\n\n\n\n\n", "<table><tr><td>1</td></tr></table>", "x" * 70,
]
BYTES = [b"\xff", b"\xc3", b"a\xc3(b", b"\xe2\x82 \xe2\x82\xac", b"\xf0\x9f\x99\x82\xf0\x9f\x99", b"\xc0\x80\xc1\xbf", b"\xed\xa0\x80\xed\xb0\x80",
         b"\xf4\x90\x80\x80", b"\xf5\xf8\xfc\xfe", b"ok\x80\x81\x82ok", b"\xef\xbb\xbfBOM", b"caf\xe9 latin-1", bytes(range(128, 256))]
LONG = [("a", 100000), ("ab", 50000), ("e", 99999), ("ABCdef", 17000), ("語", 33334), ("🙂", 25000), ("7", 100000), ("=", 100000), (" ", 100000),
        ("\n", 100000), ("the", 33333), ("na\u0301", 25000)]


def letters():
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in shown]
    return {**{b: chr(b) for b in shown}, **{b: chr(256 + i) for i, b in enumerate(hidden)}}


class Reference:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.get = lambda key: reader.fields["tokenizer.ggml." + key].contents()
        self.tokens, self.types = self.get("tokens"), self.get("token_type")
        self.index = {t: i for i, t in enumerate(self.tokens)}

    def byte(self, b):
        found = self.index.get(self.byte_text(b))
        return [] if found is None else [found]

    def encode(self, data, special):
        """Valid stretches by the reference, the bytes between them one by one."""
        ids, rest = [], data
        while rest:
            try:
                return ids + self.valid(rest.decode(), special)
            except UnicodeDecodeError as e:
                if e.start:
                    ids += self.valid(rest[:e.start].decode(), special)
                ids += self.byte(rest[e.start])
                rest = rest[e.start + 1:]
        return ids


class Bpe(Reference):
    def __init__(self, path):
        super().__init__(path)
        pre, alphabet = self.get("pre"), letters()
        self.byte_text = lambda b: alphabet[b]
        merges = [tuple(m.split(" ")) for m in self.get("merges")]
        self.made = []
        for special in (False, True):
            t = Tokenizer(models.BPE(vocab=self.index, merges=merges))
            steps = [pre_tokenizers.Split(Regex(QWEN2 if pre == "qwen2" else GPT2), "isolated")]
            if pre == "smollm":
                steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
            if pre == "qwen2":
                t.normalizer = normalizers.NFC()
            t.pre_tokenizer = pre_tokenizers.Sequence(steps + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
            t.add_tokens([AddedToken(x, normalized=False) for x, y in zip(self.tokens, self.types) if y == USER])
            if special:
                t.add_special_tokens([AddedToken(x, normalized=False) for x, y in zip(self.tokens, self.types) if y in (CONTROL, UNKNOWN)])
            self.made.append(t)

    def valid(self, text, special):
        return self.made[special].encode(text, add_special_tokens=False).ids


class Spm(Reference):
    def __init__(self, path):
        super().__init__(path)
        self.byte_text = lambda b: f"<0x{b:02X}>"
        self.made = []
        scores, kinds = self.get("scores"), {NORMAL: 1, CONTROL: 3, USER: 4, UNUSED: 5, BYTE: 6}
        for special in (False, True):
            proto = spm_pb2.ModelProto()
            proto.trainer_spec.model_type, proto.trainer_spec.byte_fallback = 2, True
            proto.trainer_spec.vocab_size = len(self.tokens)
            proto.trainer_spec.unk_piece = "<unk>"
            n = proto.normalizer_spec
            n.name, n.add_dummy_prefix, n.remove_extra_whitespaces, n.escape_whitespaces = "identity", False, False, True
            for text, kind, score in zip(self.tokens, self.types, scores):
                p = proto.pieces.add()
                p.piece, p.score, p.type = text, score, kinds.get(kind, 2)
                if kind == USER or (special and kind == CONTROL):
                    p.piece, p.type = text.replace(" ", "\u2581"), 4
                if text == "<unk>":  # SentencePiece insists on it; parsed as text it is a user-defined twin
                    p.type = 2
            self.made.append(SentencePieceProcessor(model_proto=proto.SerializeToString()))

    def valid(self, text, special):
        if special and "<unk>" in text:
            unk, parts, ids = self.index["<unk>"], text.split("<unk>"), []
            for i, part in enumerate(parts):
                ids += ([unk] if i else []) + (self.made[1].encode(part) if part else [])
            return ids
        return self.made[special].encode(text)


def fnv(ids):
    h = 14695981039346656037
    for b in struct.pack(f"<{len(ids)}i", *ids):
        h = (h ^ b) * 1099511628211 % 2**64
    return h


def main():
    folder, peer = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    texts = [t.encode() for t in TEXTS] + BYTES
    if peer:
        with open(f"{peer}/tok-{MODELS[0]}.json", encoding="utf-8") as f:
            texts += [s["text"].encode() for s in json.load(f)["strings"]]
    texts = list(dict.fromkeys(texts))
    print("# made by tools/make_tokenizer_vectors.py")
    for name in MODELS[:3]:  # the fourth has the vocabulary of the third
        path = f"{folder}/{name}.gguf"
        reference = (Spm if name.startswith("gemma") else Bpe)(path)
        for text in texts:
            plain, special = (reference.encode(text, s) for s in (False, True))
            print(name, "p", text.hex() or "-", *plain)
            if special != plain:
                print(name, "s", text.hex() or "-", *special)
        for unit, count in LONG:
            ids = reference.encode(unit.encode() * count, False)
            print(name, "p", f"{unit.encode().hex()}*{count}", f"n={len(ids)}", f"fnv={fnv(ids):016x}")


if __name__ == "__main__":
    main()
