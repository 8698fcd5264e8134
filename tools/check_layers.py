#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Includes point down only (docs/design.md, section 2). Prints each that does not; the status says whether there is one.

A module may include itself, what stands for it in DOWN, and what those may include. The checker is right: change the
design before this table.
"""
import pathlib, re, sys

DOWN = {
    "base": [],
    "os": ["base"],
    "gguf": ["os"],
    "quant": ["base"],
    "model": ["gguf", "quant"],
    "plan": ["model"],
    "kv": ["base"],
    "sample": ["base"],
    "text": ["base"],
    "backend": ["quant", "os"],
    "engine": ["kv", "plan", "backend", "sample", "text", "model"],
    "forecast": ["model", "os"],
    "convert": ["engine", "os"],
    "api": ["engine", "forecast", "convert"],
}
# Of a module that is not below, single headers may be.
ALSO = {"backend": {"plan/ir.h", "plan/ops.def"}}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)


def below(module):
    seen, todo = {module}, [module]
    while todo:
        for lower in DOWN[todo.pop()]:
            if lower not in seen:
                seen.add(lower)
                todo.append(lower)
    return seen


def check_src(root):
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in (".c", ".h", ".def"):
            continue
        where, module = path.relative_to(root), path.relative_to(root / "src").parts[0]
        if module not in DOWN:
            yield f"{where}: {module} is not a module of the design"
            continue
        for kind, name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if kind == "<":
                continue
            if name == "sluice.h":
                if module != "api":
                    yield f"{where}: only api sees sluice.h"
            elif not (root / "src" / name).is_file():
                yield f'{where}: "{name}" is not written as module/file.h'
            elif name.split("/")[0] not in below(module) and name not in ALSO.get(module, ()):
                yield f"{where}: {module} must not include {name}"


def check_outside(root):
    """Programs and examples see the public header and their own folder."""
    for folder in ("apps", "examples"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            for kind, name in INCLUDE.findall(path.read_text(encoding="utf-8")):
                if kind == '"' and name != "sluice.h" and not ((path.parent / name).is_file() and "/" not in name):
                    yield f"{path.relative_to(root)}: may include sluice.h and its own folder, not {name}"
    for kind, name in INCLUDE.findall((root / "include/sluice.h").read_text(encoding="utf-8")):
        if kind == '"':
            yield f"include/sluice.h: includes {name}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    trouble = [*check_src(root), *check_outside(root)]
    print("\n".join(trouble) if trouble else "layers: fine")
    return bool(trouble)


if __name__ == "__main__":
    sys.exit(main())
