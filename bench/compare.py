#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares sluice with its peers on a list of GGUF files.

  compare.py FILE... --llama DIR --ik DIR [--rounds 5] [--prefill 512] [--decode 64] [--depth 0] [--out FILE.json]
  compare.py FILE... --jitter | --startup | --rows 1,2,4,8 | --busy | --oversubscribe

A round runs every program once, one after another, so that whatever else the machine does falls on all of them; the figures
are medians of the rounds, the ratios are to the better peer. DIR is a folder with a llama-bench. Prints a Markdown table;
--out keeps every single figure.
"""
import argparse, json, os, pathlib, platform, statistics, sys, time

from peers import LlamaBench, Sluice, Spinners

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROMPT, PROMPT_TOKENS = "The quick brown fox jumps over the lazy dog", 8


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def show(value, digits=1):
    return "-" if value is None else f"{value:.{digits}f}"


def ratio(ours, theirs, more_is_better=True):
    """To the better peer; above 1 is faster than it."""
    theirs = [t for t in theirs if t is not None]
    if ours is None or not theirs:
        return None
    return ours / max(theirs) if more_is_better else min(theirs) / ours


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


class Comparison:
    def __init__(self, options):
        self.o = options
        self.engines = [Sluice(options.sluice, options.sluice_args)]
        if options.llama:
            self.engines.append(LlamaBench("llama.cpp", options.llama, options.llama_args))
        if options.ik:
            self.engines.append(LlamaBench("ik_llama.cpp", options.ik, options.ik_args, depth_flag="-gp"))
        self.names = [e.name for e in self.engines]
        self.kept = []  # every figure, for --out

    def rounds(self, model, measure, what="round"):
        """{engine: [figure of each round]}; measure(engine) gives a figure or None."""
        out = {name: [] for name in self.names}
        for i in range(self.o.rounds):
            for engine in self.engines:
                if sys.stderr.isatty():
                    print(f"\r\033[K{model.name}: {what} {i + 1} of {self.o.rounds}, {engine.name} ", end="", file=sys.stderr)
                out[engine.name].append(measure(engine))
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        return out

    def keep(self, model, **figures):
        self.kept.append({"file": model.name, **figures})

    # ---- modes ----

    def speed(self):
        o, rows = self.o, []
        for model in o.files:
            got = self.rounds(model, lambda e: e.speed(model, o.threads, o.prefill, o.decode, o.depth))
            full = [g.pop("full") for g in got["sluice"]]
            self.keep(model, speed=got, sluice=full)
            rows.append(self.speed_row(model, got, full))
        table(["file", "GB a token", "read GB/s", *(f"prefill {n}" for n in self.names), "ratio", *(f"decode {n}" for n in self.names),
               "ratio", *(f"{n}, share of the bus" for n in self.names), "p99/p50", "noisy"], rows)

    def speed_row(self, model, got, full):
        read = median([f["read_gb_s"] for f in full])
        decode_of = [f["decode"][0] for f in full if f["decode"]]
        n_bytes = decode_of[0]["bytes"] if decode_of else None
        row = [model.name, show(n_bytes and n_bytes * 1e-9, 3), show(read)]
        for kind in ("prefill", "decode"):
            speeds = [median([g[kind] for g in got[n]]) for n in self.names]
            row += [show(s) for s in speeds] + [show(ratio(speeds[0], speeds[1:]), 2)]
            if kind == "decode":
                row += [show(s and n_bytes and read and 100 * s * n_bytes * 1e-9 / read, 0) + " %" for s in speeds]
        noisy = sum(f["noise"]["noisy"] for f in full)
        return row + [show(median([d["itl_ms"]["jitter"] for d in decode_of]), 3), f"{noisy} of {len(full)}"]

    def jitter(self):
        rows = []
        for model in self.o.files:
            got = self.rounds(model, lambda e: e.token_ms(model, self.o.threads, self.o.tokens))
            self.keep(model, token_ms=got)
            for name in self.names:
                p = {k: median([g[k] for g in got[name]]) for k in ("p50", "p90", "p99", "max")}
                rows.append([model.name, name, *(show(p[k], 2) for k in p), show(median([g["p99"] / g["p50"] for g in got[name]]), 3)])
        table(["file", "program", "p50 ms", "p90", "p99", "max", "p99/p50"], rows)

    def startup(self):
        rows = []
        for model in self.o.files:
            warm(model)
            prompt, n = self.cut(model, PROMPT)
            for engine in self.engines:
                engine.startup(model, self.o.threads, prompt)
            got = self.rounds(model, lambda e: e.startup(model, self.o.threads, prompt))
            self.keep(model, startup_s=got, prompt_tokens=n)
            s = [median(got[name]) for name in self.names]
            rows.append([model.name, str(n), *(show(v, 3) for v in s), show(ratio(s[0], s[1:], False), 2)])
        table(["file", "prompt tokens", *(f"{n}, s" for n in self.names), "ratio"], rows)

    def cut(self, model, prompt):
        """As many words as make PROMPT_TOKENS tokens, and how many those are."""
        n = self.engines[0].count(model, prompt)
        return (prompt, n) if n <= PROMPT_TOKENS else self.cut(model, prompt.rsplit(" ", 1)[0])

    def rows(self):
        rows = []
        for model in self.o.files:
            got = self.rounds(model, lambda e: e.rows_ms(model, self.o.threads, self.o.rows))
            self.keep(model, step_ms=got)
            for name in self.names:
                if None in got[name]:
                    continue
                ms = [median([g[n] for g in got[name]]) for n in self.o.rows]
                rows.append([model.name, name, *(f"{show(v, 2)} ({v / ms[0]:.2f})" for v in ms)])
        table(["file", "program", *(f"{n} rows: ms (ratio)" for n in self.o.rows)], rows)

    def disturbed(self, key, head, measure_disturbed):
        """Decode as it should be, and disturbed, in the same rounds."""
        rows = []
        for model in self.o.files:
            def both(engine):
                quiet = engine.speed(model, self.o.threads, 0, self.o.decode, 0)["decode"]
                return quiet, measure_disturbed(engine, model)
            got = self.rounds(model, both)
            self.keep(model, **{key: got})
            row = [model.name]
            for name in self.names:
                quiet, disturbed = (median([g[i] for g in got[name]]) for i in (0, 1))
                row.append(f"{show(quiet)} → {show(disturbed)} ({100 * disturbed / quiet:.0f} %)")
            rows.append(row)
        table(["file", *(f"{n}, {head}" for n in self.names)], rows)

    def busy(self):
        def measure(engine, model):
            with Spinners():
                return engine.speed(model, self.o.threads, 0, self.o.decode, 0)["decode"]
        self.disturbed("busy", "tok/s alone → with a spinning process on each core", measure)

    def oversubscribe(self):
        many = 2 * len(os.sched_getaffinity(0))
        self.disturbed("oversubscribe", f"tok/s with {self.o.threads} → {many} threads",
                       lambda engine, model: engine.speed(model, many, 0, self.o.decode, 0)["decode"])


def warm(path):
    with open(path, "rb") as f:
        while f.read(1 << 24):
            pass


def machine():
    name = platform.processor()
    try:
        name = next(line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {"cpu": name, "processors": len(os.sched_getaffinity(0)), "system": platform.release(), "load": os.getloadavg()[0],
            "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime())}


def rows_list(text):
    rows = [int(n) for n in text.split(",")]
    if rows[0] < 1 or rows != sorted(set(rows)):
        raise argparse.ArgumentTypeError(f"must rise from 1 or more, unlike {text}")
    return rows


def parse():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    a.add_argument("--sluice", default=ROOT / "build/apps/sluice", help="the program (build/apps/sluice)")
    a.add_argument("--llama", help="folder of llama.cpp's programs")
    a.add_argument("--ik", help="folder of ik_llama.cpp's programs")
    for name in ("sluice", "llama", "ik"):
        a.add_argument(f"--{name}-args", default="", help=f"more arguments for it, as one word ({name})")
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    a.add_argument("--prefill", type=int, default=512, help="prompt length (512; 0: none)")
    a.add_argument("--decode", type=int, default=64, help="tokens (64; 0: none)")
    a.add_argument("--depth", type=int, default=0, help="positions in the context when decode begins")
    a.add_argument("--tokens", type=int, default=1000, help="for --jitter")
    a.add_argument("--out", type=pathlib.Path, help="JSON with every figure")
    mode = a.add_mutually_exclusive_group()
    mode.add_argument("--jitter", action="store_true", help="times between tokens")
    mode.add_argument("--startup", action="store_true", help="exec to the end of a run of one token after an 8-token prompt, file in the page cache")
    mode.add_argument("--rows", type=rows_list, metavar="R,R..", help="steps of several rows")
    mode.add_argument("--busy", action="store_true", help="decode with a spinning process pinned to each core")
    mode.add_argument("--oversubscribe", action="store_true", help="decode with twice as many threads as cores")
    options = a.parse_args()
    for path in options.files:
        if not path.is_file():
            a.error(f"{path} is not a file")
    return options


def main():
    options = parse()
    c = Comparison(options)
    mode = next((m for m in ("jitter", "startup", "rows", "busy", "oversubscribe") if getattr(options, m)), "speed")
    about = machine()
    print(f"{about['cpu']}, {about['processors']} processors, {options.threads} threads; medians of {options.rounds} rounds; "
          f"load {about['load']:.1f} at the beginning; {about['date']} UTC\n", flush=True)
    try:
        getattr(c, mode)()
    finally:
        if options.out:  # also what a stopped run had
            temp = options.out.with_name(options.out.name + ".part")
            temp.write_text(json.dumps({"machine": about, "mode": mode, "threads": options.threads, "rounds": options.rounds,
                                        "results": c.kept}) + "\n")
            temp.replace(options.out)


if __name__ == "__main__":
    main()
