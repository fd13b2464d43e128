"""``python -m lgcontrol``: the same as the command ``lgcontrol``."""

import sys

from .cli import main

sys.exit(main())
