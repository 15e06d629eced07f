"""Batch normalisation over the batches of all processes, for CPU; torch has it for GPU.

    y = (x - mean) / sqrt(var + eps) * weight + bias        mean, var over every row of every process

Without it two processes would normalise each by its own half, which is another function and another gradient.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from tacit.shapes import Tensor

__all__ = ["SyncedBatchNorm1d"]


class _Sum(torch.autograd.Function):
    """The sum over all processes; its adjoint is the sum of the processes' gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        total = gradient.contiguous().clone()
        dist.all_reduce(total)
        return total


class SyncedBatchNorm1d(torch.nn.modules.batchnorm._BatchNorm):
    """`torch.nn.BatchNorm1d` or `BatchNorm2d` whose training statistics are those of all processes together."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected rows of features, at least 2 dims; received shape {tuple(input.shape)}")

    def forward(self, x: Tensor) -> Tensor:
        """Normalise `x (n, features, ...)`."""
        if not self.training:
            return super().forward(x)
        dims = [0, *range(2, x.dim())]
        shape = [1, -1] + [1] * (x.dim() - 2)
        count = _Sum.apply(x.new_tensor([x.numel() / x.shape[1]]))
        mean = _Sum.apply(x.sum(dims)) / count
        centred = x - mean.view(shape)
        variance = _Sum.apply(centred.square().sum(dims)) / count
        if self.track_running_stats:
            with torch.no_grad():
                assert self.running_mean is not None and self.running_var is not None
                assert self.num_batches_tracked is not None
                self.num_batches_tracked += 1
                momentum = 1 / int(self.num_batches_tracked) if self.momentum is None else self.momentum
                self.running_mean.lerp_(mean, momentum)
                self.running_var.lerp_(variance * count / (count - 1), momentum)
        y = centred * (variance + self.eps).rsqrt().view(shape)
        return y if self.weight is None else y * self.weight.view(shape) + self.bias.view(shape)

    @classmethod
    def convert(cls, module: torch.nn.Module) -> torch.nn.Module:
        """Return the module with its batch normalisations replaced; parameters and buffers are the same objects."""
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            synced = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats)
            synced._parameters.update(module._parameters)
            synced._buffers.update(module._buffers)
            return synced.train(module.training)
        for name, child in module.named_children():
            setattr(module, name, cls.convert(child))
        return module
