"""Trees of rigid bodies with Lie-group joints."""

from ... import _names

_names.answer(__name__)
