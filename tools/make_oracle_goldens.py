#!/usr/bin/env python3
"""Log-probabilities of real models by the independent float64 oracle, as goldens for tests/model/test_oracle.c.

  make_oracle_goldens.py PEER_DIR MODEL_DIR OUT_DIR      (PEER_DIR has oracle.py and greedy-*.json; needs numpy and gguf)

For each model a text of 200 tokens, prose and code, built from the ids of the recorded prompts, and for each position
the 32 best tokens with their log-probabilities. A test compares a distribution with these by
KL over the 32 and the lumped rest, which is never more than the whole KL and close to it.
"""
import json, pathlib, sys
import numpy as np

TOP, PROSE, TOTAL = 32, 110, 200
MODELS = ("SmolLM2-135M-Instruct.Q4_1", "gemma-3-270m-q4_k_m", "qwen2.5-coder-0.5b-instruct-q4_k_m", "qwen2.5-coder-1.5b-instruct-q4_k_m")


def text_ids(greedy):
    """prose first, then code, cut to TOTAL"""
    by_name = {p["name"]: p["ids"] for p in greedy["prompts"]}
    ids = list(by_name["about-900-tokens"][:PROSE])
    for name in ("python", "c", "javascript", "sql", "json"):
        ids += by_name[name]
    return ids[:TOTAL]


def main(peer, models, out):
    sys.path.insert(0, peer)
    import oracle
    for name in MODELS:
        ids = text_ids(json.load(open(f"{peer}/greedy-{name}.json", encoding="utf-8")))
        m = oracle.Model(f"{models}/{name}.gguf")
        top = []
        for _, _, lp in oracle.rows(m, [ids]):
            best = np.argpartition(-lp, TOP)[:TOP]
            best = best[np.lexsort((best, -lp[best]))]
            top.append([[int(t), round(float(lp[t]), 7)] for t in best])
        path = pathlib.Path(out) / f"{name}.json"
        path.write_text(json.dumps({"model": name, "ids": ids, "top": top}, separators=(",", ":")) + "\n")
        print(path, len(ids), path.stat().st_size)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
