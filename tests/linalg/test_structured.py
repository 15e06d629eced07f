from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch

from tacit.errors import OptionError, OptionTypeError
from tacit.linalg import (
    Banded,
    BandedMatrix,
    BlockDiagonal,
    Diagonal,
    DiagonalMatrix,
    Structure,
    StructuredMatrix,
    detect_structure,
)

DTYPES = [torch.float64, torch.float32]
STRUCTURES = [Diagonal(), BlockDiagonal(1), BlockDiagonal(3), Banded(0), Banded(1), Banded(2), Banded(4)]
Operator = Callable[[torch.Tensor], torch.Tensor]


def pattern(structure: Structure, m: int) -> torch.Tensor:
    i = torch.arange(m)
    if isinstance(structure, BlockDiagonal):
        return i[:, None] // structure.size == i // structure.size
    return (i[:, None] - i).abs() <= (structure.bandwidth if isinstance(structure, Banded) else 0)


def example(
    structure: Structure, b: int, m: int, kind: str = "spd", dtype: torch.dtype = torch.float64
) -> torch.Tensor:
    K = torch.randn(b, m, m, generator=torch.Generator().manual_seed(m), dtype=torch.float64)
    K = (K + K.mT) * pattern(structure, m)
    if kind == "spd":
        K = K + torch.diag_embed(K.abs().sum(-1) + 0.1)
    return K.to(dtype)


def product(K: torch.Tensor) -> Operator:
    return lambda v: (K @ v[..., None])[..., 0]


def recover(structure: Structure, K: torch.Tensor) -> StructuredMatrix:
    return structure.recover(product(K), K.shape[-1], K.dtype, K.device, K.shape[0])


def test_the_number_of_products_does_not_depend_on_the_size() -> None:
    assert [s.colors() for s in STRUCTURES] == [1, 1, 3, 1, 3, 5, 9]
    for structure in STRUCTURES:
        probes = structure.probes(100, torch.float64, "cpu")
        assert probes.shape == (structure.colors(), 100)
        assert torch.equal(probes.sum(0), torch.ones(100, dtype=torch.float64))


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@pytest.mark.parametrize("m", [1, 2, 5, 9, 20])
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_recover_the_matrix(structure: Structure, m: int, dtype: torch.dtype) -> None:
    dense = example(structure, 3, m, "indefinite", dtype)
    K = recover(structure, dense)
    eye = torch.eye(m, dtype=dtype).expand(3, m, m)
    torch.testing.assert_close(K.matvec(eye), dense)
    torch.testing.assert_close(K.row_sums(), dense.abs().sum(-1))


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@pytest.mark.parametrize("m", [1, 2, 5, 9, 40])
@pytest.mark.parametrize("kind", ["spd", "indefinite"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions_have_a_backward_error_of_rounding(
    structure: Structure, m: int, kind: str, dtype: torch.dtype
) -> None:
    dense = example(structure, 4, m, kind, dtype)
    f = recover(structure, dense).factor()
    v = torch.randn(4, m, 3, generator=torch.Generator().manual_seed(1), dtype=dtype)
    x = f.solve(v)
    assert f.ok.all()
    assert f.residual(v, x).max() < 5 * torch.finfo(dtype).eps
    truth = torch.linalg.solve(dense.double(), v.double())
    bound = 50 * torch.finfo(dtype).eps * torch.linalg.cond(dense.double()).max() * truth.abs().max()
    assert (x - truth).abs().max() < bound


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@pytest.mark.parametrize("kind", ["spd", "indefinite"])
def test_rcond_is_right_within_a_factor_of_ten(structure: Structure, kind: str) -> None:
    dense = example(structure, 20, 24, kind)
    f = recover(structure, dense).factor()
    scaled = f.scale[:, :, None] * dense * f.scale[:, None, :]
    ratio = f.rcond * torch.linalg.cond(scaled, 1)
    assert ratio.min() > 0.9
    assert ratio.max() < 10


def path_laplacian(m: int) -> torch.Tensor:
    L = 2 * torch.eye(m, dtype=torch.float64)
    L[0, 0] = L[-1, -1] = 1
    off = torch.ones(m - 1, dtype=torch.float64).diag(1)
    return L - off - off.T


@pytest.mark.parametrize("m", [2, 3, 8, 50, 101])
def test_a_singular_banded_matrix_is_seen_as_singular(m: int) -> None:
    zero_row = torch.eye(m, dtype=torch.float64)
    zero_row[m // 2, m // 2] = 0
    f = recover(Banded(1), torch.stack([path_laplacian(m), zero_row, torch.eye(m, dtype=torch.float64)])).factor()
    assert (f.rcond[:2] < 1e-13).all()
    assert f.rcond[2] == 1
    x = f.solve(torch.ones(3, m, 1, dtype=torch.float64))
    torch.testing.assert_close(x[2], torch.ones(m, 1, dtype=torch.float64))


@pytest.mark.parametrize("m", [2, 10, 64])
def test_a_zero_diagonal_does_not_make_a_regular_matrix_singular(m: int) -> None:
    # Every block that is eliminated first is zero.
    off = torch.ones(m - 1, dtype=torch.float64).diag(1)
    K = recover(Banded(1), (off + off.T)[None])
    f = K.factor()
    v = torch.randn(1, m, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert f.ok.all()
    assert f.rcond.item() > 0.1 / m**2
    torch.testing.assert_close(f.solve(v), torch.linalg.solve((off + off.T)[None], v), atol=1e-10, rtol=0)


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_units_do_not_matter(structure: Structure) -> None:
    units = 10.0 ** (3 * torch.sin(torch.arange(30, dtype=torch.float64)))
    dense = example(structure, 2, 30)
    scaled = units[:, None] * dense * units
    truth = torch.ones(2, 30, 1, dtype=torch.float64) / units[:, None]
    f = recover(structure, scaled).factor()
    assert f.rcond.min() > 1e-3
    assert ((f.solve(scaled @ truth) - truth) * units[:, None]).abs().max() < 1e-12


def test_rounding_noise_on_the_diagonal_is_not_taken_for_small_units() -> None:
    f = DiagonalMatrix(torch.tensor([[1.0, 1e-17], [1.0, 1e-9]], dtype=torch.float64)).factor()
    assert f.rcond[0] < 1e-16
    assert f.rcond[1] > 0.1


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0])
def test_a_broken_element_is_zero_and_its_neighbours_do_not_notice(structure: Structure, bad: float) -> None:
    dense = example(structure, 3, 10)
    v = torch.ones(3, 10, 2, dtype=torch.float64)
    K = recover(structure, dense)
    clean = K.factor().solve(v)
    entries = K.entries.clone()
    entries[1] = bad
    broken = type(K)(entries, *([10] if isinstance(structure, BlockDiagonal) else []))
    f = broken.factor()
    assert f.ok.tolist() == [True, False, True]
    assert f.rcond[1] == 0
    x = f.solve(v)
    torch.testing.assert_close(x[[0, 2]], clean[[0, 2]], atol=1e-12, rtol=0)
    assert x[1].abs().max() == 0


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_an_empty_batch_is_no_error(structure: Structure) -> None:
    f = recover(structure, torch.zeros(0, 5, 5)).factor()
    assert f.ok.shape == (0,)
    assert f.solve(torch.zeros(0, 5, 1)).shape == (0, 5, 1)


def random_bands(m: int, w: int) -> BandedMatrix:
    bands = torch.randn(1, m, 2 * w + 1, generator=torch.Generator().manual_seed(m), dtype=torch.float64)
    column = torch.arange(m)[:, None] + torch.arange(-w, w + 1)
    return BandedMatrix(bands * ((column >= 0) & (column < m)) + 0.0)


@pytest.mark.parametrize("w", [1, 5])
def test_ten_thousand_unknowns_take_well_under_a_second_and_time_grows_like_the_size(w: int) -> None:
    seconds = []
    for m in (10_000, 80_000):
        K, v = random_bands(m, w), torch.ones(1, m, 1, dtype=torch.float64)
        tries = []
        for _ in range(3):
            began = time.perf_counter()
            f = K.factor()
            x = f.solve(v)
            tries.append(time.perf_counter() - began)
        seconds.append(min(tries))
        assert f.residual(v, x).max() < 1e-14
    assert seconds[0] < 1
    # Quadratic growth would be 64-fold; 8 is linear.
    assert seconds[1] < 25 * seconds[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("hidden", "found"),
    [(Diagonal(), Diagonal()), (Banded(1), Banded(1)), (Banded(2), Banded(2)), (Banded(3), Banded(4))],
    ids=str,
)
def test_the_narrowest_structure_is_detected(hidden: Structure, found: Structure, dtype: torch.dtype) -> None:
    dense = example(hidden, 3, 40, "indefinite", dtype)
    assert detect_structure(product(dense), 40, dtype, "cpu", 3) == found


def test_one_dense_element_or_one_far_entry_means_no_structure() -> None:
    dense = example(Diagonal(), 3, 40)
    dense[1] = example(Banded(39), 1, 40)[0]
    assert detect_structure(product(dense), 40, torch.float64, "cpu", 3) is None
    corner = example(Banded(1), 1, 40)
    corner[0, 0, 39] = 1e-6
    assert detect_structure(product(corner), 40, torch.float64, "cpu", 1) is None


def test_an_element_that_is_not_finite_has_no_say_about_structure() -> None:
    dense = example(Banded(1), 2, 20)
    dense[0, 3, 3] = float("nan")
    assert detect_structure(product(dense), 20, torch.float64, "cpu", 2) == Banded(1)
    assert detect_structure(product(dense[:1]), 20, torch.float64, "cpu", 1) is None


def test_detection_costs_a_few_products() -> None:
    count = 0
    dense = example(Banded(40), 1, 60)

    def counted(v: torch.Tensor) -> torch.Tensor:
        nonlocal count
        count += 1
        return product(dense)(v)

    assert detect_structure(counted, 60, torch.float64, "cpu", 1) is None
    assert count <= 20


@pytest.mark.untyped
def test_senseless_sizes_say_what_to_give() -> None:
    with pytest.raises(OptionError, match="size"):
        BlockDiagonal(0)
    with pytest.raises(OptionError, match="bandwidth"):
        Banded(-1)
    with pytest.raises(OptionTypeError, match="whole number"):
        Banded(1.5)
