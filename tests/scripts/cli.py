# SPDX-License-Identifier: MIT
"""What the tests of the program share: running it within limits, and the models."""
import json, os, pathlib, pty, resource, select, subprocess, tempfile, time, unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SLUICE = os.environ.get("SLUICE_BIN", str(ROOT / "build/apps/sluice"))
TINY = ROOT / "tests/golden/tiny"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "sluice"
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
SECONDS, MEMORY = 60, 4 << 30  # a sanitizer needs more address space than there is, so there the memory has no limit


def limit(seconds=SECONDS):
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    if not os.environ.get("SLUICE_TEST_NO_LIMIT"):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def sluice(*args, stdin=b"", seconds=SECONDS, **more):
    """Runs the program. `stdin` is text or bytes; more goes to subprocess.run."""
    more.setdefault("stdout", subprocess.PIPE)
    more.setdefault("preexec_fn", lambda: limit(seconds))
    if isinstance(stdin, str):
        stdin = stdin.encode()
    return subprocess.run([SLUICE, *map(str, args)], input=stdin, stderr=subprocess.PIPE, timeout=seconds * 2, **more)


def chat(folder, *args, lines, seconds=SECONDS, killed=False):
    """`sluice run` on a terminal, which is given the lines one after the other; what it printed. Its state is in folder.
    The last line leaves it, or it is killed when it asks for one more."""
    master, slave = pty.openpty()
    home = {**os.environ, "HOME": str(pathlib.Path(folder) / "home"), "TERM": "dumb"}
    home.pop("XDG_STATE_HOME", None)
    done = subprocess.Popen([SLUICE, "run", *map(str, args)], stdin=slave, stdout=slave, stderr=slave, env=home)
    os.close(slave)
    seen, deadline, lines = b"", time.monotonic() + seconds, list(lines)
    while time.monotonic() < deadline:
        ready, _, _ = select.select([master], [], [], 1)
        try:
            more = os.read(master, 4096) if ready else b""
        except OSError:
            break
        seen += more
        if seen.endswith(b"> ") and (lines or killed):
            if not lines:
                done.kill()
                break
            os.write(master, lines.pop(0).encode() + b"\n")
    os.close(master)
    if done.wait(10) != (-9 if killed else 0):
        raise AssertionError(f"the chat ended with {done.returncode}: {seen[-500:]}")
    return seen.decode(errors="replace")


def model(name):
    path = pathlib.Path(os.environ.get("SLUICE_MODEL_DIR") or CACHE / "models") / name
    if not path.is_file():
        if os.environ.get("SLUICE_TEST_NO_SKIP"):
            raise AssertionError(f"{path} is not there")
        raise unittest.SkipTest(f"{path} is not there; tools/fetch_models.py fetches it")
    return path


class Case(unittest.TestCase):
    def ok(self, done):
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace")[-500:])
        return done.stdout

    def ok_json(self, done):
        return json.loads(self.ok(done))

    def refused(self, done, *words, status=1):
        """One line on stderr that says why, nothing on stdout, and the status."""
        reason = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, status, f"stderr: {reason[-500:]}")
        self.assertRegex(reason, r"\Asluice: [^\n]+\n\Z")
        self.assertFalse(done.stdout, "a refusal prints nothing on standard output")
        for word in words:
            self.assertIn(word, reason)
        return reason


class FolderCase(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
