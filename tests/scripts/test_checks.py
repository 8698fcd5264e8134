# SPDX-License-Identifier: MIT
"""The checkers find what they are for."""
import pathlib, subprocess, sys, tempfile, unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


class Layers(unittest.TestCase):
    def run_check(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("src/base/a.h", "src/plan/ir.h", "src/model/model.h", "include/sluice.h", "apps/x/own.h"):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text("")
            for name, include in files.values():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(f"#include {include}\n")
            return subprocess.run([sys.executable, "-B", TOOLS / "check_layers.py", folder], capture_output=True).returncode

    def test_layers(self):
        for fine in (("src/plan/x.c", '"model/model.h"'), ("src/plan/x.c", '"base/a.h"'), ("src/backend/x.c", '"plan/ir.h"'),
                     ("src/api/x.c", '"sluice.h"'), ("apps/x/main.c", '"own.h"'), ("apps/x/main.c", '"sluice.h"'),
                     ("src/engine/x.c", "<stdio.h>")):
            self.assertEqual(self.run_check(f=fine), 0, fine)
        for bad in (("src/model/x.c", '"plan/ir.h"'), ("src/backend/x.c", '"model/model.h"'), ("src/base/x.c", '"model/model.h"'),
                    ("src/base/x.c", '"a.h"'), ("src/engine/x.c", '"sluice.h"'), ("apps/x/main.c", '"base/a.h"'),
                    ("apps/x/main.c", '"../../src/base/a.h"'), ("src/odd/x.c", "<stdio.h>"), ("include/sluice.h", '"base/a.h"')):
            self.assertEqual(self.run_check(f=bad), 1, bad)


class Symbols(unittest.TestCase):
    def run_check(self, source):
        with tempfile.TemporaryDirectory() as folder:
            c, o = pathlib.Path(folder, "x.c"), pathlib.Path(folder, "x.o")
            c.write_text(source)
            subprocess.run(["cc", "-c", c, "-o", o], check=True)
            return subprocess.run([TOOLS / "check_symbols.sh", o], capture_output=True).returncode

    def test_symbols(self):
        self.assertEqual(self.run_check("int sl_x; int sluice_y(void) { return 0; } static int z; int *sl_p = &z;"), 0)
        self.assertEqual(self.run_check("int other(void) { return 0; }"), 1)


if __name__ == "__main__":
    unittest.main()
