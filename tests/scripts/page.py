# SPDX-License-Identifier: MIT
"""A page of a report, read strictly."""
import html.parser


class Page(html.parser.HTMLParser):
    """The open elements, and every attribute that could fetch something."""
    VOID = {"meta", "path", "circle", "rect"}
    LOOSE = {"th", "td"}  # closed by what follows

    def __init__(self):
        super().__init__()
        self.open, self.trouble, self.count = [], [], {}

    def handle_starttag(self, tag, attributes):
        self.count[tag] = self.count.get(tag, 0) + 1
        self.trouble += [a for a, value in attributes if a in ("src", "href", "onload")]
        if tag not in self.VOID and tag not in self.LOOSE:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in self.VOID:  # <circle><title></title></circle>
            return
        if not self.open or self.open.pop() != tag:
            self.trouble.append(tag)
