"""Names of the library between single back-quotes on a page, `MulticlassHead` or `bounds.held_out_error`, as links.

So the pages read well as files too, where they are plain code.
"""

from __future__ import annotations

import re

from docutils import nodes
from pages import target
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

ELSEWHERE = (nodes.reference, nodes.title, addnodes.pending_xref)
"""Code in one of these stays as it is."""


class Links(SphinxTransform):
    """Have the code of a page refer to what it names."""

    default_priority = 500

    def apply(self) -> None:
        """Look at all code of a page that is written in Markdown."""
        if not re.search(r"\.(md|ipynb)$", str(self.env.doc2path(self.env.docname))):
            return
        for code in [*self.document.findall(nodes.literal)]:
            found, above = target(code.astext()), code.parent
            while above is not None and not isinstance(above, ELSEWHERE):
                above = above.parent
            if found is not None and above is None:
                link = addnodes.pending_xref(
                    "", code.deepcopy(), refdomain="py", reftype="obj", reftarget=found, refexplicit=True,
                    refwarn=True, refdoc=self.env.docname,
                )  # fmt: skip
                link["py:module"] = link["py:class"] = None
                code.replace_self(link)


def setup(app: Sphinx) -> dict[str, bool]:  # noqa: D103
    app.add_transform(Links)
    return {"parallel_read_safe": True}
