"""The house is in order: every rule of `rules.py`, applied to this tree."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tacit
from house import rules

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
TESTS = ROOT / "tests"
EXTRAS = {
    "PIL",
    "beartype",
    "ipyopt",
    "clarabel",
    "cvxpy",
    "daqp",
    "h5py",
    "jaxtyping",
    "matplotlib",
    "numpy",
    "rich",
    "scipy",
    "tensorboard",
    "torchmetrics",
    "yaml",
}
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())


def report(offenders: list[str]) -> str:
    return "\n" + "\n".join(offenders)


def test_rooms_import_downward_only():
    (contract,) = [c for c in CONFIG["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    bad = rules.upward_imports(SRC, contract["layers"])
    assert not bad, report(bad)


@pytest.mark.parametrize(
    "rule",
    [
        rules.engine_couplings,
        rules.hidden_imports,
        rules.layer_couplings,
        rules.oversized,
        rules.prints,
        rules.undeclared_dependencies,
    ],
    ids=lambda rule: rule.__name__,
)
def test_the_source_has_no(rule):
    bad = rule(SRC)
    assert not bad, report(bad)


def test_every_module_has_the_test_file_that_mirrors_it():
    bad = rules.missing_tests(SRC, TESTS)
    assert not bad, report(bad)


def test_every_claim_stands_in_code_tests_and_table():
    bad = rules.loose_claims(SRC, TESTS, ROOT / "docs" / "paper" / "claims.md")
    assert not bad, report(bad)


def test_public_names_are_sorted_few_and_there():
    names = list(tacit.__all__)
    assert names == sorted(names)
    assert len(names) == len(set(names)) <= 20
    missing = [name for name in names if not hasattr(tacit, name)]
    assert not missing, report(missing)


def test_public_names_are_documented():
    def own(value):  # inspect.getdoc would accept what a class inherits from torch.nn.Module or int
        return vars(value)["__doc__"] if isinstance(value, type) else value.__doc__

    silent = [name for name in tacit.__all__ if name != "__version__" and not own(getattr(tacit, name))]
    assert not silent, report(silent)


def test_every_module_imports_and_opens_with_a_docstring():
    without_triton = importlib.util.find_spec("triton") is None  # kernels are loaded only where it is
    skipped = ("__main__", "_kernel") if without_triton else ("__main__",)
    found = [name for name in rules.modules(SRC) if not name.endswith(skipped)]
    bad = [f"{name} has no docstring" for name in found if not importlib.import_module(name).__doc__]
    assert not bad, report(bad)


def test_the_library_imports_where_torch_is_alone():
    script = f"import sys; sys.modules.update(dict.fromkeys({sorted(EXTRAS)})); import tacit; print(tacit.__name__)"
    run = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(SRC)}, capture_output=True, text=True
    )
    assert run.stdout.strip() == "tacit", run.stderr


def test_every_extra_is_known_to_the_test_above():
    declared = {
        re.split(r"[<>=\[]", need)[0]
        for name, needs in CONFIG["project"]["optional-dependencies"].items()
        if name not in ("dev", "docs")
        for need in needs
    }
    assert declared - {"pillow", "pyyaml"} <= EXTRAS


def test_the_library_carries_its_types():
    assert (SRC / "tacit" / "py.typed").is_file()
