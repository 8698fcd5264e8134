# SPDX-License-Identifier: MIT
"""The programs that are compared, each as an object with the same methods; None where a program cannot do it.

Every method starts the program anew, and gives figures of one run of it. What they count is the same, but for one thing:
sluice's times of a token hold the sampling, its peers' do not.
"""
import json, os, pathlib, shlex, subprocess, time

SECONDS = 3600  # of one run, at most


def run(command, **more):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=SECONDS, **more)
    if done.returncode:
        raise SystemExit(f"compare: {command[0]} failed: {done.stderr.decode(errors='replace').strip()[-400:]}")
    return done.stdout


def seconds(command):
    """From exec to the end, with the output thrown away."""
    start = time.monotonic()
    run(command)
    return time.monotonic() - start


class Sluice:
    name = "sluice"

    def __init__(self, path, extra=""):
        self.path, self.extra = path, shlex.split(extra)

    def bench(self, model, threads, *args):
        return json.loads(run([self.path, "bench", model, "--threads", threads, "--reps", 1, "--json", *args, *self.extra]))

    def speed(self, model, threads, n_prefill, n_decode, depth):
        out = self.bench(model, threads, "--prefill", n_prefill, "--decode", n_decode, "--depth", depth)
        decode = out["decode"][0] if out["decode"] else {}
        return {"prefill": out["prefill"][0]["tok_s"] if out["prefill"] else None, "decode": decode.get("tok_s"), "full": out}

    def token_ms(self, model, threads, n):
        out = self.bench(model, threads, "--prefill", 0, "--decode", n, "--depth", 0)
        return out["decode"][0]["itl_ms"]

    def rows_ms(self, model, threads, rows):
        out = self.bench(model, threads, "--prefill", 0, "--decode", 0, "--rows", ",".join(map(str, rows)))
        return {r["n"]: r["step_ms"] for r in out["rows"]}

    def startup(self, model, threads, prompt):
        return seconds([self.path, "run", model, "--raw", "-p", prompt, "-n", 1, "--temp", 0, "--ctx", 512, "--threads", threads])

    def count(self, model, text):
        done = subprocess.run([str(self.path), "tokenize", str(model), "--bos"], input=text.encode(), stdout=subprocess.PIPE, check=True)
        return len(json.loads(done.stdout))


class LlamaBench:
    """llama.cpp and its forks: a folder with llama-bench, and perhaps more."""

    def __init__(self, name, folder, extra="", depth_flag="-d"):
        self.name, self.folder, self.extra, self.depth_flag = name, pathlib.Path(folder), shlex.split(extra), depth_flag

    def tool(self, *names):
        return next((self.folder / n for n in names if (self.folder / n).is_file()), None)

    def bench(self, model, threads, *args):
        return json.loads(run([self.tool("llama-bench"), "-m", model, "-t", threads, "-o", "json", *args, *self.extra]))

    def speed(self, model, threads, n_prefill, n_decode, depth):
        out = []
        if depth and n_decode:  # a prefill has no depth here
            out += self.bench(model, threads, "-r", 1, *self.at_depth(n_decode, depth))
            n_decode = 0
        if n_prefill or n_decode:
            out += self.bench(model, threads, "-p", n_prefill, "-n", n_decode, "-r", 1)
        return {"prefill": next((e["samples_ts"][0] for e in out if not e["n_gen"]), None),
                "decode": next((e["samples_ts"][0] for e in out if e["n_gen"]), None)}

    def at_depth(self, n, depth):
        if self.depth_flag == "-d":
            return ["-p", 0, "-n", n, "-d", depth]
        return ["-p", 0, "-n", 0, "-gp", f"{depth},{n}"]  # ik_llama.cpp

    def token_ms(self, model, threads, n):
        """llama-bench keeps no times of tokens; n runs of one token are n such times, all at depth 0."""
        ms = sorted(s * 1e-6 for s in self.bench(model, threads, "-p", 0, "-n", 1, "-r", n)[0]["samples_ns"])
        rank = lambda share: ms[max(0, -int(-share * len(ms) // 1) - 1)]
        return {"p50": (ms[(len(ms) - 1) // 2] + ms[len(ms) // 2]) / 2, "p90": rank(0.9), "p99": rank(0.99), "max": ms[-1],
                "mean": sum(ms) / len(ms)}

    def rows_ms(self, model, threads, rows):
        """Sequences side by side: the same work on the weights as rows of one sequence."""
        tool, n = self.tool("llama-batched-bench"), 16
        if not tool:
            return None
        out = run([tool, "-m", model, "-t", threads, "-c", 64 * max(rows), "-npp", 16, "-ntg", n, "-npl", ",".join(map(str, rows)),
                   "--output-format", "jsonl", *self.extra]).decode()
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        return {e["pl"]: e["t_tg"] * 1e3 / n for e in lines}

    def startup(self, model, threads, prompt):
        tool = self.tool("llama-completion", "llama-cli")
        return tool and seconds([tool, "-m", model, "-t", threads, "-p", prompt, "-n", 1, "--temp", 0, "-c", 512, "-no-cnv"])


class Spinners:
    """A process on each processor that never rests."""

    def __enter__(self):
        self.children = []
        for cpu in sorted(os.sched_getaffinity(0)):
            child = os.fork()
            if child == 0:
                try:
                    os.sched_setaffinity(0, {cpu})
                    parent = os.getppid()
                    while os.getppid() == parent:  # ends with its parent, whatever happens to it
                        for _ in range(1000000):
                            pass
                finally:
                    os._exit(0)
            self.children.append(child)
        return self

    def __exit__(self, *_):
        for child in self.children:
            os.kill(child, 9)
            os.waitpid(child, 0)
