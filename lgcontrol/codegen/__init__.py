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

- Make one of a function of your own: `trace` gives a `ModelFunction`. `Value` is the type of its
  arguments, numbers and symbols alike.
- Compile: `compile` at once, `prepare` if that pays for the calls to come; `BuildError`.
- Repeat a step in one call: `chain`.
- Settings: `set_compile_policy`, `set_threads`; `cache_info`, `cache_clear`.
- Refuse wrong arguments of a function of your own by name: `named_options`.

Without a compiler everything works, slower. The toolkit's own loops (`simulate`, `rollout`) compile
what they call often, and so does a large batch; for a loop of your own that must not wait, as on a
robot, compile before it. Environment variables: ``LGCONTROL_COMPILE`` (auto, off, eager; see
`set_compile_policy`), ``LGCONTROL_CACHE`` (folder of compiled functions), ``LGCONTROL_THREADS``
(see `set_threads`), ``CC`` (the compiler).
"""

from .. import _names
from ._cache import cache_clear as cache_clear
from ._cache import cache_info as cache_info
from ._compile import chain as chain
from ._compile import compile as compile
from ._compile import prepare as prepare
from ._compile import trace as trace
from ._compiler import BuildError as BuildError
from ._model_function import ModelFunction as ModelFunction
from ._policy import set_compile_policy as set_compile_policy
from ._threads import set_threads as set_threads
from ._types import Value as Value
from ._validate import named_options as named_options

_names.answer(__name__)
