"""Sphinx configuration. `make docs` builds the site; warnings are errors."""

from __future__ import annotations

import semibandit

project = "semibandit"
author = "The semibandit authors"
copyright = "the semibandit authors"
release = version = semibandit.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
# The packages' own `__all__` says what is public, so a new class appears in the reference by being exported.
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = "semibandit"
