"""ResNet-18, and its variants whose features are projected before the classifier.

The parameters have the names of the usual pre-trained state dict, and at 1,000 classes there are 11.7 million of them.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from tacit.errors import OptionError, nearest
from tacit.nn import insert_projection
from tacit.shapes import Float, Tensor

__all__ = ["MODELS", "STEMS", "ResNet18", "build", "norm_and_surface"]

# Name -> p and surface; the order is that of the paper's table 3.
MODELS: dict[str, tuple[float, str] | None] = {
    "plain": None,
    "l1-sphere": (1, "sphere"),
    "l2-sphere": (2, "sphere"),
    "linf-sphere": (math.inf, "sphere"),
    "l1-ball": (1, "ball"),
    "l2-ball": (2, "ball"),
    "linf-ball": (math.inf, "ball"),
}

# Name -> first convolution's kernel and stride, and whether max pooling follows: images shrink by 4, by 2, or not.
STEMS = {"imagenet": (7, 2, True), "medium": (3, 1, True), "small": (3, 1, False)}


class Block(nn.Module):
    """Two 3 x 3 convolutions, added to what came in."""

    def __init__(self, entering: int, leaving: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(entering, leaving, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(leaving)
        self.conv2 = nn.Conv2d(leaving, leaving, 3, 1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(leaving)
        self.downsample = (
            nn.Sequential(nn.Conv2d(entering, leaving, 1, stride, bias=False), nn.BatchNorm2d(leaving))
            if stride > 1 or entering != leaving
            else None
        )

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d i j"]:
        """Return the block's output, smaller by the stride."""
        added = x if self.downsample is None else self.downsample(x)
        x = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(x)) + added)


class ResNet18(nn.Module):
    """Eight residual blocks, averaged over the image, and a linear classifier.

    Args:
        classes: how many.
        stem: "imagenet" for images of about 224 pixels, "medium" for 64, "small" for 32.
        width: channels of the first stage, 64 in the paper; the others have 2, 4 and 8 times as many.

    >>> sum(p.numel() for p in ResNet18(1000).parameters())
    11689512
    """

    def __init__(self, classes: int, stem: str = "imagenet", width: int = 64) -> None:
        super().__init__()
        if stem not in STEMS:
            raise OptionError(f"stem expects one of {sorted(STEMS)}; received {stem!r}.{nearest(str(stem), STEMS)}")
        kernel, stride, pool = STEMS[stem]
        self.conv1 = nn.Conv2d(3, width, kernel, stride, padding=kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1) if pool else nn.Identity()
        self.layer1 = nn.Sequential(Block(width, width, 1), Block(width, width, 1))
        self.layer2 = nn.Sequential(Block(width, 2 * width, 2), Block(2 * width, 2 * width, 1))
        self.layer3 = nn.Sequential(Block(2 * width, 4 * width, 2), Block(4 * width, 4 * width, 1))
        self.layer4 = nn.Sequential(Block(4 * width, 8 * width, 2), Block(8 * width, 8 * width, 1))
        self.fc = nn.Linear(8 * width, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def features(self, x: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b n"]:
        """Return what the classifier is given: the last stage, averaged over the image."""
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return x.mean((2, 3))

    def forward(self, x: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b k"]:
        """Return the scores, before the softmax."""
        return self.fc(self.features(x))


def norm_and_surface(name: str) -> tuple[float, str] | None:
    """Return p and the surface of a model's projection, None for the plain one, or raise."""
    if name not in MODELS:
        raise OptionError(f"model expects one of {list(MODELS)}; received {name!r}.{nearest(str(name), MODELS)}")
    return MODELS[name]


def build(name: str, classes: int, *, radius: float | None = None, stem: str = "imagenet", width: int = 64) -> ResNet18:
    """Return the model of that name; one that projects needs the radius of its sphere or ball.

    >>> build("l2-ball", 10, radius=15.0, width=8).fc.p
    2.0
    """
    projection = norm_and_surface(name)
    model = ResNet18(classes, stem, width)
    if projection is None:
        return model
    if radius is None:
        raise OptionError(
            f"model {name!r} needs a radius; received none. `tacit image scale` measures one on a trained plain model."
        )
    p, surface = projection
    insert_projection(model, p, radius, surface=surface, before="fc")
    return model
