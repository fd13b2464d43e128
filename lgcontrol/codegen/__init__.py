"""Functions of models: traced once, called on NumPy or CasADi values, compiled when it pays."""

from ._cache import CacheInfo as CacheInfo
from ._cache import CacheRemoval as CacheRemoval
from ._cache import cache_clear as cache_clear
from ._cache import cache_info as cache_info
from ._chain import ChainFunction as ChainFunction
from ._chain import chain as chain
from ._compile import compile as compile
from ._compile import prepare as prepare
from ._in_place import InPlaceCall as InPlaceCall
from ._model_function import ModelFunction as ModelFunction
from ._policy import compile_policy as compile_policy
from ._policy import set_compile_policy as set_compile_policy
from ._threads import set_threads as set_threads
from ._threads import thread_count as thread_count
from ._trace import trace as trace
from ._types import Shape as Shape
from ._types import Value as Value
from ._validate import check_shape as check_shape
from ._validate import format_shape as format_shape
from ._validate import is_symbolic as is_symbolic
from ._validate import unknown_name as unknown_name
