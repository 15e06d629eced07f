"""Layers as the compiler and the interpreter of kernels can take them."""

from __future__ import annotations

import contextlib
import inspect
import os

import pytest
import torch


@pytest.fixture(autouse=True)
def functions_can_be_compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """In tests that compile, the methods of an autograd.Function are bare.

    The tracer gets them without a source, and then cannot look into the checks around them, even switched off.
    """
    if request.node.get_closest_marker("compile"):
        for kind in torch.autograd.Function.__subclasses__():
            if kind.__module__.startswith("tacit."):
                for name in ("forward", "setup_context", "backward"):
                    monkeypatch.setattr(kind, name, staticmethod(inspect.unwrap(getattr(kind, name))))


@pytest.fixture
def kernels_may_be_interpreted(monkeypatch: pytest.MonkeyPatch):
    """The interpreter needs no device to be chosen."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        monkeypatch.setattr(torch.cuda, "device_of", lambda x: contextlib.nullcontext())
