"""How the documentation is built: ``make docs``. Nothing is fetched; a warning is an error."""

import shutil
import sys
from importlib import metadata
from pathlib import Path

from click import Context
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import blocks  # noqa: E402
import renew  # noqa: E402

project = "Outbid"
author = "the Outbid developers"
project_copyright = author
version = release = metadata.version("outbid")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click"]
exclude_patterns = ["_build", "_run"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.strikethrough"]
default_role = "py:obj"
smartquotes = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = f"Outbid {release}"
html_static_path = ["style"]
html_css_files = ["outbid.css"]
html_show_sourcelink = False
html_sidebars = {"tutorial": []}
html_theme_options = {
    "show_toc_level": 2, "navbar_end": ["theme-switcher"], "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"], "footer_end": [],
}  # fmt: skip


def run_page(_app: Sphinx, name: str, source: list[str]) -> None:
    """Show what the blocks of a page print."""
    folder = HERE / "_run" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    source[0] = blocks.with_output(renew.dated(renew.renewed(source[0])), folder)


def examples_as_code(_app: Sphinx, _context: Context, lines: list[str]) -> None:
    """What a help text sets apart, to be read letter by letter."""
    lines[:] = [line if not line.startswith("| ") else f"    {line[2:]}" for line in lines]
    first = next((number for number, line in enumerate(lines) if line.startswith("    ")), None)
    if first is not None:
        lines[first:first] = [".. code-block:: text", ""]


def dashes(_app: Sphinx, _domain: str, _kind: str, content: nodes.Element) -> None:
    """Between a parameter and what it is; elsewhere two hyphens are an option of a command."""
    for text in list(content.findall(nodes.Text)):
        if text.startswith(" -- "):
            text.parent.replace(text, nodes.Text(f" – {text[4:]}"))


def _formula(translator: HTML5Translator, node: nodes.math) -> None:
    """Formulas as MathML, which browsers draw without a script from elsewhere."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def _formula_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (_formula, None), (_formula_block, None))
    app.connect("source-read", run_page)
    app.connect("object-description-transform", dashes)
    app.connect("sphinx-click-process-description", examples_as_code)
    app.connect("sphinx-click-process-epilog", examples_as_code)
