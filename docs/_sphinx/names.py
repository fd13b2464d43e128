"""What names something public links to its entry in the reference: code, and types of arguments."""

import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform

import lgcontrol

# Objects below this room are entered with the whole path; pages write the name alone or `lg.name`.
_PREFIXES = ("lgcontrol.", "lg.")


def addresses() -> dict[str, str]:
    """Return the entry in the reference of each name that a page may write."""
    import importlib

    from reference import ROOMS, public_names

    found: dict[str, str] = {}
    for module in ROOMS:
        room = importlib.import_module(f"lgcontrol.{module}")
        for name in public_names(room):
            found.setdefault(name, f"{room.__name__}.{name}")
    for name in dir(lgcontrol):
        if name in found:
            found[f"lg.{name}"] = found[f"lgcontrol.{name}"] = found[name]
    return found


class LinkNames(SphinxTransform):
    """Turn inline code that is a public name into a reference to it."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Link each name but those in headings and in links."""
        names = addresses_of(self.app)
        for kind in list(self.document.findall(nodes.classifier)):
            self.link_types(kind, names)
        for literal in list(self.document.findall(nodes.literal)):
            text = literal.astext().removesuffix("()")
            target = names.get(text)
            parent = literal.parent
            if target is None or isinstance(parent, (nodes.title, nodes.reference, pending_xref)):
                continue
            link = self.link_to(target)
            literal.replace_self(link)
            link += literal

    def link_to(self, target: str) -> pending_xref:
        """Return an empty link to an entry of the reference."""
        link = pending_xref("", refdomain="py", reftype="obj", reftarget=target, refexplicit=True)
        link["refdoc"] = self.env.current_document.docname
        return link

    def link_types(self, kind: nodes.classifier, names: dict[str, str]) -> None:
        """Link the classes that the type of an argument names, such as "System or array_like"."""
        for text in list(kind.findall(nodes.Text)):
            parts: list[nodes.Node] = []
            for word in re.split(r"(\b[A-Z]\w+\b)", text.astext()):
                target = names.get(word)
                if target is None:
                    parts.append(nodes.Text(word))
                else:
                    link = self.link_to(target)
                    link += nodes.literal(word, word)
                    parts.append(link)
            text.parent.replace(text, parts)


def addresses_of(app: Any) -> dict[str, str]:
    """Return the addresses, collected once a build."""
    if not hasattr(app, "public_addresses"):
        app.public_addresses = addresses()
    return app.public_addresses


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
