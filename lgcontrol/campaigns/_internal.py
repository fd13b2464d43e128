"""What the command line needs of campaigns."""

from ._design import load as load
from ._design import refer as refer
