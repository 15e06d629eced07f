"""What holds for every test: annotations are checked, one thread, figures stay off the screen.

Set TACIT_TYPES=0 to run without the checks, as someone who has only torch does.
"""

from __future__ import annotations

import os
import sys

import jaxtyping
import pytest

from typecheck import ENABLED

os.environ.setdefault("MPLBACKEND", "Agg")

if ENABLED:
    # Before anything imports tacit: the hook rewrites modules as they load.
    jaxtyping.install_import_hook("tacit", "typecheck.check")

import torch

if ENABLED:
    # torch.library.custom_op reads annotations in the globals of the function it is given: under the hook that is a
    # wrapper of jaxtyping's, where the name Tensor is not known.
    vars(sys.modules[jaxtyping.jaxtyped.__module__]).setdefault("Tensor", torch.Tensor)

# Timings and the last digits of a sum do not depend on how many cores there are; xdist's workers do not fight for them.
torch.set_num_threads(1)


def pytest_itemcollected(item: pytest.Item):
    """Marks that a test of `NodeContract` carries as words, since the library does not import pytest."""
    for name in getattr(getattr(item, "function", None), "marks", ()):
        item.add_marker(name)


@pytest.fixture(autouse=True)
def annotations_are_checked(request: pytest.FixtureRequest):
    """On, except where the tracer of torch.compile would stumble over it, or a wrong argument is the point."""
    off = any(request.node.get_closest_marker(name) for name in ("compile", "untyped"))
    jaxtyping.config.update("jaxtyping_disable", off)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
