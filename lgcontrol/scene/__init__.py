"""What can be seen of a model, a plan, a run or a map, as data; pages and figures draw it.

- To see it: `view`.
- The record: `Scene`, with its `SceneBody`.
- How a system looks: `BodyShape`, such as a `box`; `wheeled_body`.
"""

from .. import _names
from ._records import BodyShape as BodyShape
from ._records import SceneBody as SceneBody
from ._records import box as box
from ._records import wheeled_body as wheeled_body
from ._scene import Scene as Scene
from ._scene import view as view

_names.answer(__name__)
