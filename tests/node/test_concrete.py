"""Ordinary code sees plain tensors, all samples at once, under any stack of transforms."""

from __future__ import annotations

import torch
from torch.func import grad, jacfwd, jvp, vmap

from tacit.node.concrete import concrete

SEEN: list[tuple[tuple[int, ...], ...]] = []


def code(dims, plain):
    """Numpy, a branch and a loop: nothing that a transform could trace."""
    SEEN.append(tuple(tuple(t.shape) for t in plain))
    x, w = plain
    total = float(x.numpy().sum())
    return (x * 2 if total > -1e9 else x, x.sum(1) * 0 + len(x) + 0 * w.sum())


def call(x, w, dims=(0, None)):
    return concrete(code, dims, (x, w))


X, W = torch.arange(12.0).reshape(4, 3), torch.ones(2)


def test_plain_tensors_go_straight_through():
    doubled, count = call(X, W)
    assert torch.equal(doubled, 2 * X) and count.tolist() == [4.0] * 4
    assert not doubled.requires_grad


def test_mapped_axes_are_folded_into_the_one_batch_and_unfolded():
    SEEN.clear()
    doubled, count = vmap(call, in_dims=(0, None))(X.reshape(2, 2, 3), W)
    assert SEEN == [((4, 3), (2,))]
    assert torch.equal(doubled, 2 * X.reshape(2, 2, 3)) and count.shape == (2, 2)
    SEEN.clear()
    vmap(vmap(call, in_dims=(1, None)), in_dims=(0, None))(torch.ones(5, 2, 7, 3), W)
    assert SEEN == [((70, 3), (2,))]


def test_a_shared_tensor_that_is_mapped_becomes_batched():
    SEEN.clear()
    doubled, _ = vmap(call, in_dims=(None, 0))(X, torch.ones(5, 2))
    assert SEEN == [((20, 3), (20, 2))]
    assert torch.equal(doubled, (2 * X).expand(5, 4, 3))


def test_nothing_is_differentiated():
    assert grad(lambda x: call(x, W)[0].sum())(X).abs().max() == 0
    assert jvp(lambda x: call(x, W)[0], (X,), (X,))[1].abs().max() == 0
    assert jacfwd(lambda x: call(x, W)[0])(X).abs().max() == 0


def test_saved_tensor_hooks_and_inference_tensors_do_not_matter():
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert torch.equal(concrete(lambda d, p: (vmap(torch.sin)(p[0]),), (0,), (X,))[0], X.sin())
    with torch.inference_mode():
        assert torch.equal(call(X, W)[0], 2 * X)
