"""Campaigns: many runs of a closed loop that differ, stored as they come, and what they tell.

- `Campaign` runs a design with what a `lgcontrol.simulation.Vary` varies, on processes or a
  cluster; its `run` gives a result with confidence intervals, worst cases and a report.
- `tune` searches for weights, gains and other arguments of a design by such campaigns.
- `attraction_level` is a level set of an LQR's cost from which it comes back, as sampled.
- `CampaignError` says what keeps one from going on.
"""

from .. import _names
from ._attraction import attraction_level as attraction_level
from ._campaign import Campaign as Campaign
from ._design import CampaignError as CampaignError
from ._tuning import tune as tune

_names.answer(__name__)
