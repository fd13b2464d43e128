"""Equations as MathML, which browsers draw themselves: no script, nothing from a network."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write an equation within a line."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write an equation in lines of its own."""
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx as the renderer of equations in HTML."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
