"""What an estimator is: the protocol that `lgcontrol.simulation` asks for. It brings no filters."""

from ..simulation import Estimator as Estimator
from ..simulation import FullEstimator as FullEstimator
