"""Campaigns: many runs of a closed loop that differ, stored as they come, and what they tell.

- `Campaign` runs a design with what a `lgcontrol.simulation.Vary` varies, on processes or a
  cluster; its `run` gives a result with confidence intervals, worst cases and a report.
- `CampaignError` says what keeps it from going on.
"""

from .. import _names
from ._campaign import Campaign as Campaign
from ._design import CampaignError as CampaignError

_names.answer(__name__)
