"""Functions of models: traced once, called on NumPy or CasADi values, compiled when it pays.

Every quantity of a model is a `ModelFunction`. How fast it is called is a choice:

- ``f(q, v, a)`` works at once, interpreted by CasADi.
- ``f.compiled()``, or ``compile([f, g, h])`` for several at once, builds machine code with the C
  compiler of the machine, checks it against the interpreted function, and keeps it on disk for the
  next time. Batches ``(N, n)`` then run several items an instruction and on all cores.
- ``call = f.in_place()`` is for the inner loop of a controller: ``call.inputs["q"][:] = q``, then
  ``call()``, without a copy.
- ``chain(step, N, …)`` makes a whole simulation one call, for one start or thousands.

Functions that are large because they repeat themselves (maps, MX functions that call SX functions,
such as the dynamics of trees of many bodies) become loops over tables instead of long code.

Without a compiler everything works, slower. The toolkit's own loops (`simulate`, `rollout`) compile
what they call often, and so does a large batch; for a loop of your own that must not wait, as on a
robot, compile before it. Environment variables: ``LGCONTROL_COMPILE`` (auto, off, eager; see
`set_compile_policy`), ``LGCONTROL_CACHE`` (folder of compiled functions), ``LGCONTROL_THREADS``
(see `set_threads`), ``CC`` (the compiler).
"""

from ._beside import Beside as Beside
from ._cache import CacheInfo as CacheInfo
from ._cache import CacheRemoval as CacheRemoval
from ._cache import cache_clear as cache_clear
from ._cache import cache_info as cache_info
from ._chain import ChainFunction as ChainFunction
from ._chain import chain as chain
from ._compile import compile as compile
from ._compile import prepare as prepare
from ._compiler import BuildError as BuildError
from ._compiler import Compiler as Compiler
from ._compiler import find_compiler as find_compiler
from ._emit import c_number as c_number
from ._export import Schedule as Schedule
from ._export import c_function as c_function
from ._folder import UnsafeFolder as UnsafeFolder
from ._html import html_lines as html_lines
from ._html import html_page as html_page
from ._html import html_table as html_table
from ._in_place import InPlaceCall as InPlaceCall
from ._interrupt import check_interrupt as check_interrupt
from ._interrupt import interrupt_is_answered as interrupt_is_answered
from ._interrupt import interruptible as interruptible
from ._interrupt import was_interrupted as was_interrupted
from ._library import find_or_build as find_or_build
from ._library import key_of as key_of
from ._linear import solve_linear as solve_linear
from ._model_function import ModelFunction as ModelFunction
from ._notice import Progress as Progress
from ._notice import notice as notice
from ._package import C99_HINTS as C99_HINTS
from ._package import C_EXAMPLE_HEAD as C_EXAMPLE_HEAD
from ._package import LONGEST_NAME as LONGEST_NAME
from ._package import CVector as CVector
from ._package import c_comment as c_comment
from ._package import c_identifiers as c_identifiers
from ._package import c_package_name as c_package_name
from ._package import c_places as c_places
from ._package import c_remark as c_remark
from ._package import c_table as c_table
from ._package import cmake_lists as cmake_lists
from ._package import write_package as write_package
from ._policy import compile_policy as compile_policy
from ._policy import set_compile_policy as set_compile_policy
from ._pseudo_inverse import pseudo_inverse as pseudo_inverse
from ._saddle import Saddle as Saddle
from ._symmetric import congruence as congruence
from ._symmetric import factor_symmetric as factor_symmetric
from ._symmetric import solve_factored as solve_factored
from ._symmetric import solve_symmetric as solve_symmetric
from ._threads import set_threads as set_threads
from ._threads import thread_count as thread_count
from ._trace import trace as trace
from ._types import Shape as Shape
from ._types import Value as Value
from ._unit import Part as Part
from ._unit import unit_source as unit_source
from ._validate import MOST_ORDER as MOST_ORDER
from ._validate import MOST_STEPS as MOST_STEPS
from ._validate import MOST_SUBSTEPS as MOST_SUBSTEPS
from ._validate import NO_LIMIT as NO_LIMIT
from ._validate import UnknownNameError as UnknownNameError
from ._validate import as_names as as_names
from ._validate import as_numbers as as_numbers
from ._validate import ask_degrees as ask_degrees
from ._validate import check_count as check_count
from ._validate import check_increasing as check_increasing
from ._validate import check_list as check_list
from ._validate import check_mapping as check_mapping
from ._validate import check_one_by_one as check_one_by_one
from ._validate import check_quotient as check_quotient
from ._validate import check_semidefinite as check_semidefinite
from ._validate import check_shape as check_shape
from ._validate import check_symmetric as check_symmetric
from ._validate import format_shape as format_shape
from ._validate import in_degrees as in_degrees
from ._validate import is_symbolic as is_symbolic
from ._validate import level_outside as level_outside
from ._validate import named_options as named_options
from ._validate import read_only as read_only
from ._validate import unknown_name as unknown_name
