#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files and functions stay small: past 800 and 120 lines is a failure (generated tables, *_tab.*, aside), past 500 and
60 a remark. --quiet leaves the remarks out."""
import pathlib, re, sys

FILE_MAX, FILE_LONG, FUNCTION_MAX, FUNCTION_LONG = 800, 500, 120, 60
HEAD = re.compile(r"(\w+)\s*\(")


def functions(lines):
    """(name, first line, length) of what begins in column 0 and ends with a brace in column 0."""
    name, start = None, 0
    for i, line in enumerate(lines):
        if line[:1].isalpha() or line[:1] == "_":
            head = HEAD.search(line)
            if head and not line.rstrip().endswith(";"):
                name, start = head.group(1), i
        elif line.startswith("}") and name:
            yield name, start + 1, i - start + 1
            name = None


def main():
    root = pathlib.Path(__file__).parent.parent
    bad, remarks = [], []
    for folder in ("src", "apps", "tests", "examples", "include", "bench"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            if re.search(r"_tab\.[ch]$", path.name):
                continue
            where, lines = path.relative_to(root), path.read_text(encoding="utf-8").splitlines()
            if len(lines) > FILE_LONG:
                (bad if len(lines) > FILE_MAX else remarks).append(f"{where}: {len(lines)} lines")
            for name, line, n in functions(lines):
                if n > FUNCTION_LONG:
                    (bad if n > FUNCTION_MAX else remarks).append(f"{where}:{line}: {name} has {n} lines")
    if "--quiet" not in sys.argv:
        print("\n".join(f"long: {r}" for r in remarks))
    print("\n".join(f"too long: {b}" for b in bad) if bad else "sizes: fine")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
