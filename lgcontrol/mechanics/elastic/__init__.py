"""Series-elastic trees: motors, springs, the flat map."""

from ... import _names

_names.answer(__name__)
