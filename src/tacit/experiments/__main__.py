"""`python -m tacit.experiments ...` is the command `tacit`, where no command is installed."""

from __future__ import annotations

import sys

from tacit.experiments.command import main

if __name__ == "__main__":
    sys.exit(main())
