"""Ready vehicles, arms and mechanisms.

Each is a function that returns a `lgcontrol.System`, in a file of its own: read it, call it with
other numbers, or copy it and change what you like.
"""

from ._free_box import free_box as free_box
from ._heavy_top import heavy_top as heavy_top
from ._pick_and_place_head import pick_and_place_head as pick_and_place_head
from ._quadrotor import quadrotor as quadrotor
from ._rover import rover as rover
from ._satellite import satellite as satellite
from ._surface_vessel import ManeuveringDrag as ManeuveringDrag
from ._surface_vessel import surface_vessel as surface_vessel
from ._underwater_vehicle import underwater_vehicle as underwater_vehicle
