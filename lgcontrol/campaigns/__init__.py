"""Campaigns: many runs of a closed loop that differ, stored as they come, and what they tell.

- Run many cases: `Campaign` runs a design with what a `lgcontrol.simulation.Vary` varies, on
  processes or a cluster. Its `run` gives a result with confidence intervals, worst cases and a
  report. `CampaignError` says what keeps one from going on.
- Search for better arguments: `tune` tries weights, gains and other arguments by such campaigns.
- Region of attraction: `attraction_level` is a level set of an LQR's cost, as sampled. From within
  it the closed loop comes back.
"""

from .. import _names
from ._attraction import attraction_level as attraction_level
from ._campaign import Campaign as Campaign
from ._design import CampaignError as CampaignError
from ._tuning import tune as tune

_names.answer(__name__)
