"""How `make docs` builds the site: pages of docs/, notebooks as they are stored, and the reference.

The sources are the repository's own pages, so that their links hold in an editor and on the site.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_sphinx"))

import lgcontrol  # noqa: E402 - after the path of the extensions

project = "lgcontrol"
author = "lgcontrol developers"
version = release = lgcontrol.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "numpydoc",
    "reference",
    "names",
    "gallery",
    "mathml",
]
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "notebooks/*.ipynb",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
exclude_patterns = ["**/.*", ".venv", "build", "dist", "lgcontrol", "models", "controllers"]
exclude_patterns += ["src", "tests", "tools", "docs/_sphinx", "docs/papers/*.toml", "out"]

# Notebooks are shown with the outputs that are stored in them.
nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 4

autodoc_typehints = "none"  # numpydoc's sections state types and shapes
autodoc_member_order = "bysource"
default_role = "py:obj"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "furo"
html_title = f"lgcontrol {version}"
html_copy_source = False
html_show_sphinx = False
html_extra_path = ["_sphinx/extra"]  # the front page's address without a folder
html_static_path = ["_sphinx/static"]
html_css_files = ["lgcontrol.css"]
