"""The checker that every annotated function of the library runs under in the tests, unless TACIT_TYPES=0."""

from __future__ import annotations

import os

from beartype import BeartypeConf, beartype

ENABLED = os.environ.get("TACIT_TYPES", "1") != "0"

# alpha=1 is as good as alpha=1.0, as it is to a static checker.
check = beartype(conf=BeartypeConf(is_pep484_tower=True))
