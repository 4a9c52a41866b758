"""How the site is built: `make docs`. Pages are MyST; their code cells are run, and an error in one ends the build."""

import logging
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent):
    sys.path.insert(0, str(folder))
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")])
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # of a notebook's widgets, where transformers is installed

QUIET = HERE / "_build" / "ipython"  # kernels that do not say on every page that they talk without encryption
(QUIET / "profile_default").mkdir(parents=True, exist_ok=True)
(QUIET / "profile_default" / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 40\n", encoding="utf-8")
os.environ["IPYTHONDIR"] = str(QUIET)
logging.getLogger("traitlets").setLevel(logging.WARNING)

import pages  # noqa: E402

import torch_multiclass as tm  # noqa: E402

project = "torch_multiclass"
author = copyright = "The torch_multiclass developers"
version = release = tm.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas without a network
    "sphinx.ext.viewcode",
    "links",
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
html_theme = "furo"
html_title = "torch_multiclass"
html_static_path = ["_static"]
html_css_files = ["site.css"]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 1800  # seconds a cell, on a machine that has other work too
nb_merge_streams = True
nb_render_markdown_format = "myst"  # with tables
nb_output_stderr = "remove-warn"  # what a cell warns of ends the build

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
napoleon_custom_sections = ["Shape", "Formula"]
napoleon_use_ivar = True
default_role = "py:obj"  # a name in single quotes is a link where it is a name of ours
suppress_warnings = ["ref.python"]  # a bare name that two modules share


def formulas(app, what, name, obj, options, lines):
    r"""What docstrings write as code with ``\sum`` and the like in it is a formula on a page."""
    lines[:] = [re.sub(r"``([^`]*\\[a-zA-Z]{2,}[^`]*)``", r":math:`\1`", line) for line in lines]


def added(app, what, name, member, skip, options):
    """Whether a member is one that scikit-learn adds to each estimator, and documents itself: ``set_fit_request``."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app):  # noqa: D103
    pages.write(HERE)
    app.connect("autodoc-process-docstring", formulas)
    app.connect("autodoc-skip-member", added)
