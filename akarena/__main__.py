"""``python -m akarena``."""

import sys

from akarena.cli import main

sys.exit(main())
