#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The form that no compiler checks: licence line and a comment at a file's head, no tabs, no trailing blanks, a final
newline, no invisible characters, at most 120 columns, laid out as clang-format 14 does by .clang-format (another version lays
out other lines; generated tables, *_tab.*, aside), and file names that are snake_case and unique in the tree."""
import collections, pathlib, re, shutil, subprocess, sys

INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")

COLUMN_MAX = 120
GENERATED = re.compile(r"_tab\.[ch]$")


def layout(paths, root):
    """What clang-format would change, or that there is none to ask."""
    if not shutil.which("clang-format-14"):
        yield "clang-format-14 is missing (tools/install_deps.sh test installs it)"
        return
    run = subprocess.run(["clang-format-14", "--dry-run", *map(str, paths)], capture_output=True, text=True, cwd=root)
    for line in run.stderr.splitlines():
        if "[-Wclang-format-violations]" in line:
            yield line.split(": warning")[0] + ": is laid out otherwise than by `make format`"
    if run.returncode:
        yield f"clang-format-14 failed: {run.stderr[-500:]}"


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
        if len(line) > COLUMN_MAX and not GENERATED.search(path.name):
            yield f"{where}:{i}: has {len(line)} columns, over {COLUMN_MAX}"
        if INVISIBLE.search(line):
            yield f"{where}:{i}: has an invisible character"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    trouble, names, c_files = [], collections.defaultdict(list), []
    for folder in ("src", "apps", "examples", "include", "tests", "bench", "tools"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            where = path.relative_to(root)
            trouble += check(path, where)
            if not GENERATED.search(path.name):
                c_files.append(where)
            if not re.fullmatch(r"[a-z0-9_]+\.[ch]", path.name):
                trouble.append(f"{where}: the name is not snake_case")
            # Kernels of the same noun stand in a folder for each level.
            if "kernels" not in where.parts:
                names[path.name].append(str(where))
    trouble += layout(c_files, root)
    trouble += [f"{' and '.join(places)} have the same name" for places in names.values() if len(places) > 1]
    print("\n".join(trouble) if trouble else "form: fine")
    return bool(trouble)


if __name__ == "__main__":
    sys.exit(main())
