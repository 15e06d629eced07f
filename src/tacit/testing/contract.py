"""What every layer has to pass: subclass `NodeContract`, say how the layer is built and fed, and inherit the tests.

    class TestSimplex(NodeContract):          # in a file that pytest collects
        def build(self):
            return tacit.nn.Simplex()

        def inputs(self):
            return (torch.tensor([[0.9, 0.5, -3.0], [0.2, 0.1, 0.4]]),)

        def problem_inputs(self, layer, x):   # its declared problem takes the radius too
            return x, torch.ones(len(x), dtype=x.dtype)

The layer is compared with the problem it declares (its twin), with finite differences, and with itself: batched and one
by one, transformed, copied, in another dtype. Nothing here needs pytest; a test that does not apply is skipped as
`unittest` does it, which pytest understands.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call, jacfwd, jacrev, vmap
from torch.testing import assert_close

from tacit.node import argmin, solve
from tacit.problem import Status, is_differentiable
from tacit.shapes import Tensor
from tacit.testing.harness import Harness, marked, quiet

__all__ = ["NodeContract"]


class NodeContract(Harness):
    """The tests that every layer inherits. Write `build` and `inputs`; override what else differs.

    `build()` returns a fresh layer and `inputs()` its inputs: a few samples (three is plenty), batch first, small, at
    which the layer is smooth. The contract takes both to float64, and to float32 where that is tested. Everything that
    can be said otherwise is an attribute or a method of `tacit.testing.harness.Harness`.
    """

    # ---- the layer and its twin -------------------------------------------------------------------------------------

    def test_the_solution_is_that_of_the_declared_problem(self) -> None:
        """Solving the twin from a start close by finds the y of the layer, and calls it converged."""
        layer, xs = self.ready()
        problem, values = self.problem(layer), self.problem_inputs(layer, *xs)
        y = self.call(layer, *xs)
        start = y + self.start_nudge * self.cotangent(y) * y.abs().clamp_min(0.1)
        found = solve(problem, *values, start=start, solver=self.problem_solver, in_dims=self.dims_of_problem())
        assert bool((found.status == Status.CONVERGED).all()), f"the declared problem did not converge. {found}"
        self.assert_equal(y, found.y, "y of the layer and of its declared problem")

    def test_the_gradient_is_that_of_the_declared_problem(self) -> None:
        """The implicit gradient of the twin at the layer's y is the gradient of the layer, parameters included."""
        layer, xs = self.ready(grad=True)
        problem, values = self.problem(layer), self.problem_inputs(layer, *xs)
        y = self.call(layer, *xs)
        known = y.detach()
        twin = argmin(problem, *values, solver=lambda *_: known, in_dims=self.dims_of_problem(), on_failure="raise")
        sources = {f"input {i}": x for i, x in enumerate(xs) if is_differentiable(x)}
        sources |= dict(layer.named_parameters())
        for shift in range(3):
            v = self.cotangent(y, shift)
            own = torch.autograd.grad(y, list(sources.values()), v, retain_graph=True, materialize_grads=True)
            declared = torch.autograd.grad(twin, list(sources.values()), v, retain_graph=True, materialize_grads=True)
            for name, found, wanted in zip(sources, own, declared, strict=True):
                self.assert_equal(found, wanted, f"gradient in {name} of the layer and of its declared problem")

    # ---- finite differences -----------------------------------------------------------------------------------------

    def test_the_gradient_is_that_of_finite_differences(self) -> None:
        """`torch.autograd.gradcheck` in float64, in inputs and parameters."""
        gradcheck(*self._pure(), atol=1e-6, check_undefined_grad=False)

    @marked("slow")
    def test_the_second_derivative_is_that_of_finite_differences(self) -> None:
        """`torch.autograd.gradgradcheck` in float64, in inputs and parameters."""
        self.only_if(self.differentiable_twice, "second derivatives are not promised")
        gradgradcheck(*self._pure(), atol=1e-6, check_undefined_grad=False)

    def _pure(self) -> tuple[Callable[..., Tensor], tuple[Tensor, ...]]:
        """The layer as a function of all that it can be differentiated in, and these."""
        layer, xs = self.ready(grad=True)
        parameters = dict(layer.named_parameters())
        floating = [i for i, x in enumerate(xs) if is_differentiable(x)]

        def function(*leaves: Tensor) -> Tensor:
            values = list(xs)
            for i, leaf in zip(floating, leaves[: len(floating)], strict=True):
                values[i] = leaf
            theirs = dict(zip(parameters, leaves[len(floating) :], strict=True))
            return functional_call(_Called(self, layer), {f"layer.{k}": v for k, v in theirs.items()}, tuple(values))

        return function, (*(xs[i] for i in floating), *parameters.values())

    # ---- transforms -------------------------------------------------------------------------------------------------

    def test_vmap_is_the_batch(self) -> None:
        """Mapping the layer over batches of one gives the answer of the whole batch."""
        self.only_if(self.vectorises, "vmap is not promised")
        layer, xs = self.ready()
        dims = self.dims(xs)

        def one(*sample: Any) -> Tensor:
            return self.call(layer, *(x[None] if d == 0 else x for x, d in zip(sample, dims, strict=True)))[0]

        self.assert_equal(vmap(one, in_dims=dims)(*xs), self.call(layer, *xs), "vmap and the batch")

    def test_jacrev_and_jacfwd_agree_with_backward(self) -> None:
        """The Jacobian by reverse mode, by forward mode, and row by row through backward."""
        layer, xs = self.ready(grad=True)
        layer.requires_grad_(False)
        floating = tuple(i for i, x in enumerate(xs) if is_differentiable(x))
        y = self.call(layer, *xs)
        rows = [
            torch.autograd.grad(y, [xs[i] for i in floating], e, retain_graph=True, materialize_grads=True)
            for e in torch.eye(y.numel(), dtype=y.dtype).reshape(-1, *y.shape)
        ]
        backward = [torch.stack(column).reshape(*y.shape, *column[0].shape) for column in zip(*rows, strict=True)]
        plain = tuple(x.detach() if isinstance(x, Tensor) else x for x in xs)
        transforms: list[Callable[..., Any]] = [jacrev, jacfwd] if self.forward_mode else [jacrev]
        for transform in transforms:
            blocks = transform(lambda *values: self.call(layer, *values), argnums=floating)(*plain)
            for block, wanted in zip(blocks, backward, strict=True):
                self.assert_equal(block, wanted, f"{transform.__name__} and backward")

    # ---- samples are strangers --------------------------------------------------------------------------------------

    def test_a_sample_of_nan_leaves_the_others_alone(self) -> None:
        """Their y and their gradients are the same to twelve digits."""
        self.only_if(self.isolates_samples, "isolation is not promised")
        layer, xs = self.ready()
        dims = self.dims(xs)
        ill = tuple(
            torch.cat([x[:-1], torch.full_like(x[-1:], torch.nan)]) if d == 0 and is_differentiable(x) else x
            for x, d in zip(xs, dims, strict=True)
        )
        with quiet():
            well_y, well = self.answer(layer, xs)
            ill_y, found = self.answer(layer, ill)
        assert_close(ill_y[:-1], well_y[:-1], atol=1e-12, rtol=1e-12)
        for own, wanted, d in zip(found, well, dims, strict=True):
            if d == 0 and own is not None and wanted is not None:
                assert_close(own[:-1], wanted[:-1], atol=1e-12, rtol=1e-12)

    def test_a_batch_of_one_is_its_first_sample(self) -> None:
        """Answer and gradient of a sample do not depend on its neighbours."""
        layer, xs = self.ready()
        y, grads = self.answer(layer, xs)
        alone_y, alone = self.answer(layer, self.sliced(xs, slice(0, 1)))
        self.assert_equal(alone_y, y[:1], "y alone and in company")
        for own, wanted, d in zip(alone, grads, self.dims(xs), strict=True):
            if d == 0 and own is not None and wanted is not None:
                self.assert_equal(own, wanted[:1], "gradient alone and in company")

    def test_an_empty_batch_gives_an_empty_answer(self) -> None:
        """Shaped and typed as the others; its gradient is empty or zero."""
        layer, xs = self.ready()
        y = self.call(layer, *xs)
        nothing, grads = self.answer(layer, self.sliced(xs, slice(0, 0)))
        assert nothing.shape == (0, *y.shape[1:]), f"an empty batch gave an answer of shape {tuple(nothing.shape)}"
        assert nothing.dtype == y.dtype, f"an empty batch gave an answer of {nothing.dtype}"
        assert all(g is None or bool((g == 0).all()) for g in grads)

    # ---- what a tensor may look like --------------------------------------------------------------------------------

    def test_strides_do_not_matter(self) -> None:
        """Inputs that are not contiguous give the same answer and gradient."""
        layer, xs = self.ready()
        gapped = tuple(torch.stack([x, x], dim=-1)[..., 0] if is_differentiable(x) else x for x in xs)
        self._assert_alike(self.answer(layer, gapped), self.answer(layer, xs), "with strides and without")

    def test_an_expanded_sample_collects_the_gradients_of_its_copies(self) -> None:
        """One sample seen three times gets three times its gradient."""
        layer, xs = self.ready()
        dims = self.dims(xs)

        def thrice(*single: Any) -> Tensor:
            seen = (x.expand(3, *x.shape[1:]) if d == 0 else x for x, d in zip(single, dims, strict=True))
            return self.call(layer, *seen)

        single = self.sliced(xs, slice(0, 1))
        y, once = self.answer(layer, single)
        copies, found = self.answer(layer, single, thrice)
        wanted = [None if g is None else 3 * g for g in once]
        self._assert_alike((copies, found), (y.expand_as(copies), wanted), "of a sample expanded to three")

    def test_one_input_alone_gets_the_gradient_it_gets_among_others(self) -> None:
        """Whether the other inputs require a gradient makes no difference."""
        layer, xs = self.ready()
        y, together = self.answer(layer, xs)
        for i, wanted in enumerate(together):
            if wanted is not None:
                leaf = xs[i].clone().requires_grad_()
                own = self.call(layer, *xs[:i], leaf, *xs[i + 1 :])
                (found,) = torch.autograd.grad(own, [leaf], self.cotangent(y), materialize_grads=True)
                self.assert_equal(found, wanted, f"gradient of input {i}, alone and among others,")

    def test_inputs_are_left_as_they_were(self) -> None:
        """Nothing is written into them."""
        layer, xs = self.ready()
        before = [(x, x.clone()) for x in xs if isinstance(x, Tensor)]
        self.answer(layer, xs)
        assert all(torch.equal(x, copied) for x, copied in before), "the layer writes into its input"

    def test_float32_is_exact_to_its_precision(self) -> None:
        """float32 in, float32 out; answer and gradient are those of float64, rounded."""
        y, grads = self.answer(*self.ready())
        rounded = [None if g is None else g.float() for g in grads]
        self._assert_alike(self.answer(*self.ready(torch.float32)), (y.float(), rounded), "in float32 and in float64")

    # ---- a module among modules -------------------------------------------------------------------------------------

    def test_without_gradients_the_answer_is_the_same(self) -> None:
        """Under `no_grad` and `inference_mode`; and it requires none."""
        layer, xs = self.ready(grad=True)
        y = self.call(layer, *xs).detach()
        for context in (torch.no_grad, torch.inference_mode):
            with context():
                bare = self.call(layer, *xs)
                assert not bare.requires_grad
                self.assert_equal(bare, y, f"y under {context.__name__} and with gradients")

    def test_copies_answer_alike(self) -> None:
        """`deepcopy`, `pickle`, and a fresh layer with the same `state_dict`."""
        layer, xs = self.ready()
        y = self.call(layer, *xs)
        fresh = self.build().double()
        fresh.load_state_dict(layer.state_dict())
        for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), fresh):
            self.assert_equal(self.call(copied, *xs).detach(), y, "y of a copy and of the layer")

    def test_autocast_is_survived(self) -> None:
        """float32 inputs under autocast to bfloat16: as precise as bfloat16, and with a finite gradient."""
        self.only_if(self.autocasts, "autocast is not promised")
        layer, xs = self.ready(torch.float32)
        y, _ = self.answer(layer, xs)
        with torch.autocast("cpu", torch.bfloat16):
            low, grads = self.answer(layer, xs)
        self.assert_equal(low.float(), y, "y under autocast and without", self.tolerance(torch.bfloat16))
        assert all(g is None or bool(g.isfinite().all()) for g in grads)

    @marked("slow", "compile")
    def test_compiled_it_answers_alike(self) -> None:
        """Inside a function under `torch.compile`, forward and backward."""
        self.only_if(self.compiles, "compiling is left out")
        layer, xs = self.ready()
        expected = self.answer(layer, xs)
        torch.compiler.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the compiler's own, about what it loads and what it looks at
            whole = self.compiles == "fullgraph"
            compiled = torch.compile(lambda *values: 1.0 * self.call(layer, *values), fullgraph=whole, dynamic=False)
            found = self.answer(layer, xs, compiled)
        self._assert_alike(found, expected, "compiled and eager")

    def _assert_alike(
        self, found: tuple[Tensor, list[Tensor | None]], wanted: tuple[Tensor, list[Tensor | None]], what: str
    ) -> None:
        self.assert_equal(found[0], wanted[0], f"y {what}")
        for i, (own, other) in enumerate(zip(found[1], wanted[1], strict=True)):
            if own is not None and other is not None:
                self.assert_equal(own, other, f"gradient of input {i} {what}")


class _Called(torch.nn.Module):
    """The call of a layer as a module, so that `functional_call` can replace the parameters."""

    def __init__(self, contract: NodeContract, layer: torch.nn.Module) -> None:
        super().__init__()
        self.contract = contract
        self.layer = layer

    def forward(self, *xs: Any) -> Tensor:
        return self.contract.call(self.layer, *xs)
