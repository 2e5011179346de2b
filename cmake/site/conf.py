# Sphinx's settings for the site of the documents. build.py gives the title.
# SPDX-License-Identifier: Apache-2.0
import os

from sphinx.writers.html5 import HTML5Translator

project = "Coxswain"
language = "en"
extensions = ["myst_parser"]
myst_heading_anchors = 6  # named as GitHub names them
highlight_language = "none"
html_theme = "theme"
html_theme_path = [os.path.dirname(os.path.abspath(__file__))]
html_permalinks_icon = "#"
html_copy_source = False
html_use_index = False


class Translator(HTML5Translator):
    def visit_table(self, node):  # a wide table scrolls, not the page
        self.body.append('<div class="table">')
        super().visit_table(node)

    def depart_table(self, node):
        super().depart_table(node)
        self.body.append("</div>\n")

    def visit_entry(self, node):  # an empty heading of a column is a cell
        super().visit_entry(node)
        if self.body[-1].startswith("<th") and not node.astext().strip():
            self.body[-1], self.context[-1] = "<td>", "</td>\n"


def setup(app):
    app.set_translator("html", Translator)
