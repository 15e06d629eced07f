"""A classifier that sees its features projected, and how to put one into a model that exists. DDN[feature-projection].

    scores = W P(N(features)) + b

N normalises each feature over the batch without learnable parameters, P projects onto the sphere ||u||_p = r or the
ball ||u||_p <= r, and W, b are the model's own last layer: no parameter is added. The paper scales features before a
unit ball; here the radius does that, so the scores differ from its own by the constant factor r, which W learns.
"""

from __future__ import annotations

import torch

from tacit.errors import InputTypeError, InputValueError, OptionError
from tacit.nn.functional import lp_ball, lp_sphere
from tacit.nn.functional.arguments import choice, positive_number
from tacit.nn.functional.projection import checked_p
from tacit.shapes import Float, Tensor

__all__ = ["ProjectedLinear", "insert_projection"]

SURFACES = ("ball", "sphere")


class ProjectedLinear(torch.nn.Linear):
    """A linear layer on batch-normalised features, projected onto an Lp ball or sphere along the last dim.

    Its `weight` and `bias` have the names they have in `torch.nn.Linear`, so a state dict of the plain layer fits.

    Args:
        in_features, out_features, bias: as of `torch.nn.Linear`.
        p: of the norm: 1 or more, `math.inf` included.
        radius: a positive number; a `torch.nn.Parameter`, which is then learned; or a tensor of shape ().
        surface: "ball" or "sphere".
        normalise: whether a batch normalisation without learnable parameters comes first.

    >>> ProjectedLinear(512, 10, p=2, radius=15.0)(torch.randn(4, 512)).shape
    torch.Size([4, 10])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        p: float,
        radius: float | Tensor,
        surface: str = "ball",
        normalise: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        self.p = checked_p(p)
        self.surface = choice(surface, SURFACES, "surface")
        self.normalise = (
            torch.nn.BatchNorm1d(in_features, affine=False, device=device, dtype=dtype) if normalise else None
        )
        self.radius: float | Tensor
        if isinstance(radius, Tensor) and not isinstance(radius, torch.nn.Parameter):
            self.register_buffer("radius", radius)
        else:
            self.radius = radius if isinstance(radius, Tensor) else positive_number(radius, "radius")

    def features(self, x: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        """Return what the linear map sees: `x` normalised and projected."""
        if self.normalise is not None:
            x = self.normalise(x.reshape(-1, x.shape[-1])).reshape(x.shape)
        project = lp_ball if self.surface == "ball" else lp_sphere
        return project(x, self.p, self.radius)

    def forward(self, input: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch m"]:
        """Return the scores."""
        return super().forward(self.features(input))

    def extra_repr(self) -> str:
        """Say which projection."""
        radius = f"tensor{tuple(self.radius.shape)}" if isinstance(self.radius, Tensor) else self.radius
        return f"{super().extra_repr()}, p={self.p}, radius={radius}, surface={self.surface!r}"


def insert_projection(
    model: torch.nn.Module,
    p: float,
    radius: float | Tensor,
    *,
    surface: str = "ball",
    normalise: bool = True,
    before: str | None = None,
) -> torch.nn.Module:
    """Put a normalisation and a projection in front of a linear layer of `model`, the last one unless told.

    The model is changed in place; the layer's weight and bias stay the same tensors, so trained weights and optimisers
    made earlier stay valid. A state dict of the plain model loads with `strict=False`, or before the insertion.

    Args:
        model: any module that holds a `torch.nn.Linear`.
        p, radius, surface, normalise: as of `ProjectedLinear`. A rule for the radius: 2/3 of the median norm of the
            normalised features of the trained plain model.
        before: the dotted name of the layer; None takes the last linear layer in the order of `named_modules`.

    Returns:
        `model`; if `model` is itself the linear layer, the layer that takes its place.

    Raises:
        InputTypeError, InputValueError, OptionError: no such layer, or one that does not call its `forward` plainly.

    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    >>> insert_projection(model, p=2, radius=2.5)[2]
    ProjectedLinear(
      in_features=16, out_features=3, bias=True, p=2.0, radius=2.5, surface='ball'
      (normalise): BatchNorm1d(16, ...affine=False, ...)
    )
    """
    plain = _layer_of(model, before)
    projected = ProjectedLinear(
        plain.in_features,
        plain.out_features,
        plain.bias is not None,
        p=p,
        radius=radius,
        surface=surface,
        normalise=normalise,
        device=plain.weight.device,
        dtype=plain.weight.dtype,
    )
    projected.weight, projected.bias = plain.weight, plain.bias
    projected.train(plain.training)
    if plain is model:
        return projected
    for parent in list(model.modules()):
        for name, child in parent._modules.items():  # named_children would show a shared layer once
            if child is plain:
                setattr(parent, name, projected)
    return model


def _layer_of(model: torch.nn.Module, before: str | None) -> torch.nn.Linear:
    """Return the layer to put the projection in front of, or raise."""
    if not isinstance(model, torch.nn.Module):
        raise InputTypeError(f"model expects a torch.nn.Module; received {type(model).__name__}.")
    linear = {name: module for name, module in model.named_modules() if type(module) is torch.nn.Linear}
    if before is None:
        taken = [name for name, module in model.named_modules() if isinstance(module, ProjectedLinear)]
        if taken:
            raise InputValueError(
                f"model has a projection already, in {taken[-1] or 'itself'!r}; name another layer with before=...."
            )
        if not linear:
            raise InputValueError(
                f"model expects at least one torch.nn.Linear; {type(model).__name__} has none. Put a ProjectedLinear "
                "where its scores are computed."
            )
        before = list(linear)[-1]
    if before not in linear:
        raise OptionError(
            f"before expects the name of a torch.nn.Linear: one of {sorted(linear)}; received {before!r}."
        )
    layer = linear[before]
    if layer._forward_hooks or layer._forward_pre_hooks:
        raise InputValueError(
            f"layer {before!r} has forward hooks, which would be lost; insert the projection first, then register them."
        )
    return layer
