# SPDX-License-Identifier: MIT
"""The checkers find what they are for."""
import pathlib, platform, subprocess, sys, tempfile, unittest

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


class Form(unittest.TestCase):
    HEAD = "// SPDX-License-Identifier: MIT\n//\n// What it is.\n"

    def run_check(self, text, name="x.c"):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "src").mkdir()
            (root / "src" / name).write_text(text)
            (root / ".clang-format").write_text((TOOLS.parent / ".clang-format").read_text())
            return subprocess.run([sys.executable, "-B", TOOLS / "check_form.py", folder], capture_output=True).returncode

    def test_form(self):
        self.assertEqual(self.run_check(self.HEAD + "int x;\n"), 0)
        for bad in ("int x;\n", self.HEAD + "int x;", self.HEAD + "int  x;\n", self.HEAD + "int x; \n", self.HEAD + "\tint x;\n",
                    self.HEAD + "// " + "x" * 118 + "\n", self.HEAD + "// a\u200bb\n"):
            self.assertEqual(self.run_check(bad), 1, bad)
        self.assertEqual(self.run_check(self.HEAD + "int x;\n", "Upper.c"), 1)


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


class Isa(unittest.TestCase):
    SOURCE = "typedef float v __attribute__((vector_size(32))); v sl_sum(v a, v b); v sl_sum(v a, v b) { return a + b; }"

    def run_check(self, module, *flags):
        with tempfile.TemporaryDirectory() as folder:
            objects = pathlib.Path(folder, "CMakeFiles", f"{module}.dir")
            objects.mkdir(parents=True)
            c = pathlib.Path(folder, "x.c")
            c.write_text(self.SOURCE)
            subprocess.run(["cc", "-O2", "-w", "-Wno-psabi", *flags, "-c", c, "-o", objects / "x.c.o"], check=True)
            return subprocess.run([TOOLS / "check_isa.sh", folder], capture_output=True).returncode

    @unittest.skipUnless(platform.machine() == "x86_64", "looks at x86-64 code")
    def test_isa(self):
        self.assertEqual(self.run_check("sl_base_obj"), 0)
        self.assertEqual(self.run_check("sl_base_obj", "-mavx2"), 1)
        self.assertEqual(self.run_check("sl_kernels_generic", "-mavx"), 1)
        self.assertEqual(self.run_check("sl_kernels_avx2", "-mavx2"), 0)
        self.assertEqual(self.run_check("sl_kernels_avx512", "-mavx512f"), 0)
        self.assertEqual(self.run_check("no_module"), 1)


if __name__ == "__main__":
    unittest.main()
