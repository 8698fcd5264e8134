#!/usr/bin/env python3
"""Tiny random models with logits by independent references, as goldens for tests/golden/test_tiny.c.

  make_tiny_goldens.py PEER_DIR LLAMA_CPP_SOURCE OUT_DIR      (needs torch, transformers, gguf, numpy)

Two kinds, each a GGUF file and NAME.npy, float32 logits (n, n_vocab) of the ids in NAME.json:
  F32 models of every family and variant, logits by Hugging Face transformers in float64 (PEER_DIR/tiny.py);
  models whose tensors go through every block type in turn, logits by PEER_DIR/oracle.py in float64.
"""
import json, pathlib, shutil, sys, tempfile
import numpy as np

SMALL = dict(vocab_size=320, hidden_size=32, intermediate_size=64)
# name: (family of tiny.py, variant, seed, changes)
F32_MODELS = {
    "llama-rope-factors": ("llama", 0, 101, SMALL),
    "llama-linear-spm": ("llama", 1, 102, SMALL),
    "llama-biases": ("llama", 2, 103, SMALL),
    "llama-tied-wide-heads": ("llama", 3, 104, dict(vocab_size=320)),
    "mistral": ("mistral", 0, 105, SMALL),
    "mistral-window": ("mistral", 1, 106, SMALL),
    "smollm3": ("smollm3", 0, 107, SMALL),
    "qwen2": ("qwen2", 0, 108, SMALL),
    "qwen2-tied": ("qwen2", 1, 109, dict(vocab_size=320)),
    "qwen3": ("qwen3", 0, 110, dict(vocab_size=320, hidden_size=48)),
    "qwen3-output": ("qwen3", 1, 111, dict(vocab_size=320, hidden_size=48)),
    "qwen3-yarn": ("qwen3", 2, 112, dict(vocab_size=320, hidden_size=48)),
    "gemma2": ("gemma2", 0, 113, dict(vocab_size=320, hidden_size=48)),
    "gemma3": ("gemma3_text", 0, 114, dict(vocab_size=320, hidden_size=48)),
    "gemma3-linear": ("gemma3_text", 1, 115, dict(vocab_size=320, hidden_size=48)),
}
# block types by turns, for rows of 256 and for rows that are only a multiple of 32
K_TYPES = ("Q4_K", "Q6_K", "Q2_K", "Q3_K", "Q5_K", "IQ4_XS", "Q8_0", "IQ4_NL", "MXFP4", "Q4_1", "F16")
OLD_TYPES = ("Q8_0", "Q5_0", "Q4_1", "Q4_0", "Q5_1", "IQ4_NL", "BF16", "MXFP4")
# where a block's float16 scales are; MXFP4 has an exponent byte
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0]}


def random_rows(gguf, rng, kind, rows, cols, std):
    """bytes of a (rows, cols) matrix of a block type, any bit pattern, with about the wanted deviation"""
    t = gguf.GGMLQuantizationType[kind]
    if kind in ("F32", "F16", "BF16"):
        return gguf.quants.quantize((rng.standard_normal((rows, cols)) * std).astype(np.float32), t)
    length, size = gguf.GGML_QUANT_SIZES[t]
    raw = rng.integers(0, 256, (rows * cols // length, size), dtype=np.uint8)
    if kind == "MXFP4":
        raw[:, 0] = 127 + round(np.log2(std / 3.5))
        return raw.reshape(rows, -1)
    for at in SCALES[kind]:
        raw[:, at:at + 2] = np.full(len(raw), 1, np.float16).view(np.uint8).reshape(-1, 2)
    if kind in ("Q4_1", "Q5_1"):
        mid = 7.5 if kind == "Q4_1" else 15.5
        raw[:, 2:4] = np.full(len(raw), -mid, np.float16).view(np.uint8).reshape(-1, 2)
    scale = std / gguf.quants.dequantize(raw.reshape(-1), t).std()
    for at in SCALES[kind]:
        d = raw[:, at:at + 2].copy().view(np.float16)[:, 0].astype(np.float32)
        raw[:, at:at + 2] = (d * scale * rng.uniform(0.7, 1.3, len(raw))).astype(np.float16).view(np.uint8).reshape(-1, 2)
    return raw.reshape(rows, -1)


def quantised(out, name, arch, types, n_embd, n_ff, n_head, n_head_kv, head_dim, seed, n_layer=2, n_vocab=320):
    import gguf
    import oracle
    rng = np.random.default_rng(seed)
    path = out / f"{name}.gguf"
    w = gguf.GGUFWriter(path, arch)
    w.add_name(name)
    w.add_context_length(512), w.add_embedding_length(n_embd), w.add_block_count(n_layer), w.add_feed_forward_length(n_ff)
    w.add_head_count(n_head), w.add_head_count_kv(n_head_kv), w.add_key_length(head_dim), w.add_value_length(head_dim)
    w.add_rope_dimension_count(head_dim), w.add_rope_freq_base(10000.0), w.add_layer_norm_rms_eps(1e-5), w.add_vocab_size(n_vocab)
    if arch == "gemma3":
        w.add_sliding_window(12)
    w.add_tokenizer_model("no_vocab")
    turn = iter(range(10**6))

    def add(tensor, rows, cols, gain=1.0):
        kind = types[next(turn) % len(types)]
        data = random_rows(gguf, rng, kind, rows, cols, gain / np.sqrt(cols))
        w.add_tensor(tensor, data, raw_shape=data.shape if kind != "F16" else None, raw_dtype=gguf.GGMLQuantizationType[kind])

    def norm(tensor, n):
        w.add_tensor(tensor, (1 + 0.25 * rng.standard_normal(n)).astype(np.float32))

    gemma = arch == "gemma3"
    add("token_embd.weight", n_vocab, n_embd, 2.0)
    norm("output_norm.weight", n_embd)
    if not gemma:
        add("output.weight", n_vocab, n_embd, 2.0)
    for i in range(n_layer):
        b = f"blk.{i}."
        norm(b + "attn_norm.weight", n_embd), norm(b + "ffn_norm.weight", n_embd)
        add(b + "attn_q.weight", n_head * head_dim, n_embd, 1.5), add(b + "attn_k.weight", n_head_kv * head_dim, n_embd, 1.5)
        add(b + "attn_v.weight", n_head_kv * head_dim, n_embd), add(b + "attn_output.weight", n_embd, n_head * head_dim)
        add(b + "ffn_gate.weight", n_ff, n_embd), add(b + "ffn_up.weight", n_ff, n_embd), add(b + "ffn_down.weight", n_embd, n_ff)
        if arch == "qwen2":
            for part, rows in (("q", n_head * head_dim), ("k", n_head_kv * head_dim), ("v", n_head_kv * head_dim)):
                w.add_tensor(f"{b}attn_{part}.bias", (0.3 * rng.standard_normal(rows)).astype(np.float32))
        if gemma:
            norm(b + "post_attention_norm.weight", n_embd), norm(b + "post_ffw_norm.weight", n_embd)
            norm(b + "attn_q_norm.weight", head_dim), norm(b + "attn_k_norm.weight", head_dim)
    w.write_header_to_file(), w.write_kv_data_to_file(), w.write_tensors_to_file(), w.close()
    ids = rng.integers(0, n_vocab, 40).tolist()
    m = oracle.Model(str(path))
    x, _ = m.hidden([ids])
    save(out, name, ids, m.logits(x, m.head()), "float64 oracle")


def save(out, name, ids, logits, by):
    np.save(out / f"{name}.npy", logits.astype(np.float32))
    (out / f"{name}.json").write_text(json.dumps({"ids": ids, "by": by}) + "\n")
    print(name, (out / f"{name}.gguf").stat().st_size, f"logits std {logits.std():.2f}", flush=True)


def main(peer, converter, out):
    sys.path.insert(0, peer)
    import tiny
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    for name, (family, variant, seed, changes) in F32_MODELS.items():
        with tempfile.TemporaryDirectory() as tmp:
            tiny.make(tiny.build(family, variant, seed, "f32", changes), tmp, name, converter)
            shutil.copy(f"{tmp}/{name}.gguf", out)
            ids = json.load(open(f"{tmp}/{name}.long.json"))
            save(out, name, ids, np.load(f"{tmp}/{name}.long.npy"), "transformers in float64")
    quantised(out, "llama-k-types", "llama", K_TYPES, 256, 256, 4, 2, 64, 201)
    quantised(out, "qwen2-old-types", "qwen2", OLD_TYPES, 96, 160, 3, 1, 32, 202)
    quantised(out, "gemma3-old-types", "gemma3", OLD_TYPES, 96, 160, 3, 1, 32, 203, n_layer=7)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
