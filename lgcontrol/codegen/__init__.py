"""Functions of models: traced once, called on NumPy or CasADi values."""

from ._model_function import ModelFunction as ModelFunction
from ._model_function import Shape as Shape
from ._model_function import Value as Value
from ._model_function import trace as trace
from ._validate import check_shape as check_shape
from ._validate import format_shape as format_shape
from ._validate import is_symbolic as is_symbolic
from ._validate import unknown_name as unknown_name
