"""Each rule finds its offence in a small tree made bad on purpose, and stays silent on the good half of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from house import rules

LAYERS = ["(experiments)", "nn", "node", "solvers | implicit", "problem", "shapes | errors"]


@pytest.fixture
def plant(tmp_path):
    """Writes files of a made-up package: `plant({"nn/pool.py": "import torch"})` returns its src folder."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / "src" / "tacit" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "src"

    return write


def write_test(src: Path, name: str, text: str = "") -> Path:
    tests = src.parent / "tests"
    (tests / name).parent.mkdir(parents=True, exist_ok=True)
    (tests / name).write_text(text)
    return tests


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("problem/active.py", "from tacit.node import Node"),
        ("problem/active.py", "def f():\n    from tacit.nn import pool"),
        ("solvers/newton.py", "from tacit.implicit import kkt"),
        ("implicit/kkt.py", "import tacit.solvers.newton"),
        ("implicit/kkt.py", "from ..solvers import newton"),
        ("node/node.py", "import tacit"),
        ("node/node.py", "from tacit import argmin"),
        ("node/node.py", "from tacit.experiments import common"),
        ("attic/old.py", "import torch"),
    ],
)
def test_an_import_that_goes_up_or_sideways_is_found(plant, room, line):
    src = plant({room: line, "nn/pool.py": "", "solvers/newton.py": line if room == "solvers/newton.py" else ""})
    assert len(rules.upward_imports(src, LAYERS)) == 1


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("node/node.py", "from tacit.solvers import newton\nfrom tacit.problem import Problem"),
        ("node/node.py", "from .argmin import argmin"),
        ("node/node.py", "from tacit import errors"),
        ("experiments/train.py", "import tacit"),
        ("__init__.py", "from tacit.nn import pool"),
    ],
)
def test_an_import_that_goes_down_is_not_an_offence(plant, room, line):
    src = plant({room: line, "errors.py": "", "node/argmin.py": ""})
    assert rules.upward_imports(src, LAYERS) == []


def test_an_import_inside_a_function_is_found_unless_it_drives_an_engine_or_is_not_ours(plant):
    inside = "def f():\n    from tacit.problem import Problem\n"
    src = plant(
        {
            "node/node.py": inside,
            "solvers/external/daqp.py": inside,
            "nn/plot.py": "def f():\n    import matplotlib\n",
        }
    )
    assert rules.hidden_imports(src) == [
        "tacit.node.node:2 imports tacit.problem inside a function; move it to the top"
    ]


def test_an_optional_package_imported_at_the_top_is_found_unless_guarded(plant):
    src = plant(
        {
            "solvers/a.py": "import scipy.optimize",
            "solvers/b.py": "try:\n    import scipy\nexcept ImportError:\n    scipy = None",
            "solvers/c.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy",
            "solvers/d.py": "import math, torch\ndef f():\n    import scipy",
            "experiments/e.py": "import typer",
        }
    )
    assert [line.split(":")[0] for line in rules.undeclared_dependencies(src)] == ["tacit.solvers.a"]


def test_a_layer_that_imports_another_is_found_and_functional_is_free_to_all(plant):
    src = plant(
        {
            "nn/__init__.py": "from tacit.nn.pool import Pool",
            "nn/pool.py": "from tacit.nn.functional import pool\nfrom tacit.nn import functional",
            "nn/ball.py": "from .pool import Pool",
            "nn/cone.py": "from tacit.nn import Ball",
            "nn/functional.py": "from tacit.nn.ball import Ball",
        }
    )
    assert [line.split(":")[0] for line in rules.layer_couplings(src)] == [
        "tacit.nn.ball",
        "tacit.nn.cone",
        "tacit.nn.functional",
    ]


def test_two_files_for_one_engine_are_found(plant):
    src = plant(
        {
            "solvers/external/one.py": "def f():\n    import daqp, numpy",
            "solvers/external/two.py": "def f():\n    import daqp, numpy, scipy.sparse",
            "solvers/external/three.py": "from tacit.solvers.external.one import f",
            "solvers/external/four.py": "from tacit.solvers.external._shared import f\nimport scipy.sparse",
            "solvers/external/_shared.py": "",
        }
    )
    first, second = rules.engine_couplings(src)
    assert first.startswith("tacit.solvers.external.three:1")
    assert second == "daqp is driven by tacit.solvers.external.one and tacit.solvers.external.two"


def test_a_module_without_its_mirror_is_found(plant):
    src = plant({"linalg/krylov.py": "", "linalg/_dense.py": "", "linalg/__init__.py": "", "shapes.py": ""})
    tests = write_test(src, "linalg/test_dense.py")
    assert rules.missing_tests(src, tests) == ["tacit.linalg.krylov has no tests/linalg/test_krylov.py"]


def test_a_long_file_and_a_long_function_are_found_and_a_long_docstring_is_not(plant):
    body = "    x = 1\n" * 60
    src = plant(
        {
            "a.py": "\n" * 401,
            "b.py": "def long():\n" + body,
            "c.py": 'def told():\n    """One.' + "\n" * 80 + '    """\n    return 1\n',
        }
    )
    assert [line.split(",")[0] for line in rules.oversized(src)] == [
        "tacit.a has 401 lines",
        "tacit.b:1 long has 61 lines",
    ]


def test_a_print_is_found_outside_the_experiments(plant):
    src = plant({"node/node.py": "print(1)", "experiments/train.py": "print(1)", "errors.py": '"""print(1)"""'})
    assert rules.prints(src) == ["tacit.node.node:1 prints"]


def test_a_claim_that_is_not_in_code_tests_and_table_is_found(plant):
    src = plant({"implicit/a.py": '"""States DDN[both] and DDN[code]."""', "implicit/b.py": "# DDN[comment]"})
    tests = write_test(src, "implicit/test_a.py", "# DDN[both] DDN[test]")
    write_test(src, "house/test_rules.py", "# DDN[made-up]")
    table = src.parent / "docs" / "paper" / "claims.md"
    table.parent.mkdir(parents=True)
    table.write_text(
        "| key | code | test |\n|---|---|---|\n"
        "| both | `implicit/a.py` | `implicit/test_a.py` |\n"
        "| `DDN[row]` | `implicit/gone.py` | |\n"
    )
    assert rules.loose_claims(src, tests, table) == [
        "DDN[code] is missing from tests and claims.md",
        "DDN[row] is missing from code and tests",
        "DDN[test] is missing from code and claims.md",
        "the row of DDN[row] names implicit/gone.py, which does not exist",
    ]
