#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The form that no compiler checks: licence line and a comment at a file's head, no tabs, no trailing blanks, a final
newline, no invisible characters, and file names that are snake_case and unique in the tree."""
import collections, pathlib, re, sys

INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def check(path, where):
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    if "SPDX-License-Identifier: MIT" not in "\n".join(lines[:3]):
        yield f"{where}: has no licence line at its head"
    if lines[-1]:
        yield f"{where}: has no newline at its end"
    for i, line in enumerate(lines, 1):
        if "\t" in line:
            yield f"{where}:{i}: has a tab"
        if line != line.rstrip():
            yield f"{where}:{i}: ends in blanks"
        if INVISIBLE.search(line):
            yield f"{where}:{i}: has an invisible character"


def main():
    root = pathlib.Path(__file__).parent.parent
    trouble, names = [], collections.defaultdict(list)
    for folder in ("src", "apps", "examples", "include", "tests", "bench"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            where = path.relative_to(root)
            trouble += check(path, where)
            if not re.fullmatch(r"[a-z0-9_]+\.[ch]", path.name):
                trouble.append(f"{where}: the name is not snake_case")
            # Kernels of the same noun stand in a folder for each level.
            if "kernels" not in where.parts:
                names[path.name].append(str(where))
    trouble += [f"{' and '.join(places)} have the same name" for places in names.values() if len(places) > 1]
    print("\n".join(trouble) if trouble else "form: fine")
    return bool(trouble)


if __name__ == "__main__":
    sys.exit(main())
