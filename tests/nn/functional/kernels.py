"""Where an accelerator's kernels can be tested: on one, or by Triton's interpreter on the CPU, slowly.

The latter with TRITON_INTERPRET=1 and TACIT_TYPES=0. Where neither is at hand, the module that imports this is skipped.
"""

from __future__ import annotations

import os

import pytest
import torch

__all__ = ["DEVICE", "INTERPRETED", "MARKS"]

pytest.importorskip("triton", reason="Triton is not installed")
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
if not INTERPRETED and not torch.cuda.is_available():
    pytest.skip("no accelerator, and TRITON_INTERPRET is not 1", allow_module_level=True)
DEVICE = "cpu" if INTERPRETED else "cuda"
MARKS = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # numpy's, of the interpreter
    pytest.mark.usefixtures("kernels_may_be_interpreted"),
]
