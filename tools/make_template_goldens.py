#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/templates/expected.txt: what jinja2 makes of each peer template with each conversation.

  make_template_goldens.py TEMPLATE_DIR [RENDER.py] > tests/golden/templates/expected.txt

A line "template NAME", then one line a conversation: its name, and "error" or length and FNV-1a hash (64 bit) of the UTF-8
text. The texts of the templates are not committed; the test reads them from the cache.
  make_template_goldens.py --show TEMPLATE CONVERSATION prints one expected text.
"""
import glob, importlib.util, json, os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
CONVERSATIONS = os.path.join(HERE, "../tests/golden/templates/conversations")


def load_render(path):
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("render", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fnv1a(data):
    h = 14695981039346656037
    for b in data:
        h = (h ^ b) * 1099511628211 % 2**64
    return h


def main():
    show = sys.argv[1] == "--show"
    args = sys.argv[2:] if show else sys.argv[1:]
    rest = args[2:] if show else args[1:]
    render = load_render(rest[0] if rest else os.path.join(HERE, "../../shared/peer/render.py"))
    if show:
        sys.stdout.write(render.render(open(args[0], encoding="utf-8").read(), json.load(open(args[1], encoding="utf-8"))))
        return
    for path in sorted(glob.glob(os.path.join(args[0], "*.jinja"))):
        source = open(path, encoding="utf-8").read()
        print("template", os.path.basename(path)[:-len(".jinja")])
        for c in sorted(glob.glob(os.path.join(CONVERSATIONS, "*.json"))):
            try:
                text = render.render(source, json.load(open(c, encoding="utf-8"))).encode("utf-8")
                result = f"{len(text)} {fnv1a(text):016x}"
            except Exception:
                result = "error"
            print(os.path.basename(c)[:-len(".json")], result)


if __name__ == "__main__":
    main()
