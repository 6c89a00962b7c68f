"""Sphinx configuration. `make docs` builds the site; warnings are errors."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.inspect import signature, stringify_signature

import semibandit

project = "semibandit"
author = "The semibandit authors"
copyright = "the semibandit authors"
release = version = semibandit.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]

# A page for each public class and function, in docs/reference, written anew by every build.
shutil.rmtree(Path(__file__).with_name("reference"), ignore_errors=True)
autosummary_ignore_module_all = False
autosummary_imported_members = True

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# The packages' own `__all__` says what is public, so a new class appears in the reference by being exported.
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
_ALIASES = ("IntArray", "FloatArray", "ArrayLike", "npt.ArrayLike")
autodoc_type_aliases = {name: name.split(".")[-1] for name in _ALIASES}
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = "semibandit"
# Formulas are MathML in the page, which browsers draw themselves: no script, no font, no network.
html_math_renderer = "mathml"


def tidy_signature(
    app: Any, what: str, name: str, obj: Any, options: Any, shown: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """What a reader wants to see of a signature."""
    if what == "class" and issubclass(obj, semibandit.Matroid):
        # Matroids are locked by the `__call__` of their metaclass, which hides what `__init__` takes.
        own = signature(obj.__init__, bound_method=True, type_aliases=autodoc_type_aliases)
        shown, returned = stringify_signature(own, show_return_annotation=False), None
    aliases = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
    return shown and aliases.sub(r"\1", shown), returned and aliases.sub(r"\1", returned)


def _mathml(text: str, block: bool) -> str:
    """A formula as MathML. A command that docutils does not know is an error, and so fails the build."""
    return tex2mathml(re.sub(r"\\dots\b", r"\\ldots", text), as_block=block)


def visit_math(self: Any, node: nodes.math) -> None:
    self.body.append(_mathml(node.astext(), block=False))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math"))
    self.body.append(_mathml(node.astext(), block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> None:
    app.connect("autodoc-process-signature", tidy_signature)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
