"""The house rules, as functions of a tree: each returns its offenders in words, and an empty list when there are none.

They read the source and never import it, so that a made-up bad tree can be judged as well as this one. What depends
on this project's names stands at the top.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = "tacit"
CORE = {PACKAGE, "torch"}  # what the library may import at the top of a file
MAX_FILE = 400
MAX_FUNCTION = 60
KEY = re.compile(r"DDN\[([A-Za-z0-9_.-]+)\]")
ROW = re.compile(r"^\|\s*`?(?:DDN\[)?([A-Za-z0-9_.-]+)\]?`?\s*\|")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Import(NamedTuple):
    """One imported module: its dotted name, the line, and where the statement stands."""

    name: str
    line: int
    inside_function: bool
    guarded: bool  # under TYPE_CHECKING or in a try that catches ImportError


def modules(src: Path) -> dict[str, Path]:
    """Dotted name -> file, for every module of the package under `src`."""
    found = {}
    for path in sorted((src / PACKAGE).rglob("*.py")):
        parts = path.relative_to(src).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _is_guard(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    if isinstance(node, ast.Try):
        caught = " ".join(ast.unparse(handler.type) for handler in node.handlers if handler.type)
        return "ImportError" in caught or "ModuleNotFoundError" in caught
    return False


def _targets(node: ast.Import | ast.ImportFrom, name: str, path: Path, known: dict[str, Path]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = node.module or ""
    if node.level:
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        stem = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*stem, *([node.module] if node.module else [])])
    submodules = [f"{base}.{alias.name}" for alias in node.names]
    return [sub if sub in known else base for sub in submodules]


def imports(name: str, path: Path, known: dict[str, Path]) -> Iterator[Import]:
    """Every import of a module; `from a import b` counts as `a.b` where that is a module."""

    def walk(node: ast.AST, inside: bool, guarded: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import | ast.ImportFrom):
                for target in dict.fromkeys(_targets(child, name, path, known)):
                    yield Import(target, child.lineno, inside, guarded)
            else:
                within = inside or isinstance(child, Function | ast.Lambda)
                yield from walk(child, within, guarded or _is_guard(child))

    yield from walk(ast.parse(path.read_text("utf-8")), False, False)


def layers(lines: list[str]) -> dict[str, int]:
    """Room -> height above the ground, from the layers written top to bottom as import-linter reads them."""
    heights = {}
    for height, line in enumerate(reversed(lines)):
        for room in re.split(r"[|:]", line):
            heights[room.strip(" ()")] = height
    return heights


def upward_imports(src: Path, lines: list[str]) -> list[str]:
    """Imports from a room to one above it, to a sibling, or to the package itself (which holds all rooms)."""
    heights, known, bad = layers(lines), modules(src), []
    for name, path in known.items():
        if name == PACKAGE:
            continue
        room = name.split(".")[1]
        if room not in heights:
            bad.append(f"{name}: room {room!r} has no place among the layers in pyproject.toml")
            continue
        for imported in imports(name, path, known):
            parts = imported.name.split(".")
            if parts[0] != PACKAGE:
                continue
            if len(parts) == 1:
                if room != "experiments":
                    bad.append(f"{name}:{imported.line} imports the whole of {PACKAGE}; name the room")
            elif parts[1] != room and heights.get(parts[1], len(heights)) >= heights[room]:
                bad.append(f"{name}:{imported.line} imports {imported.name}, which is not below {room}")
    return bad


def hidden_imports(src: Path) -> list[str]:
    """Imports of our own modules inside functions: a dodge of a cycle. External engines and lazy facades may."""
    known, bad = modules(src), []
    for name, path in known.items():
        if name == PACKAGE or name.startswith(f"{PACKAGE}.solvers.external"):
            continue
        for imported in imports(name, path, known):
            if imported.inside_function and imported.name.split(".")[0] == PACKAGE:
                bad.append(f"{name}:{imported.line} imports {imported.name} inside a function; move it to the top")
    return bad


def undeclared_dependencies(src: Path) -> list[str]:
    """Top-level imports of anything but the standard library, torch and ourselves: extras are imported where used."""
    known, bad = modules(src), []
    for name, path in known.items():
        if name.startswith(f"{PACKAGE}.experiments") or name.endswith("_kernel"):  # kernels are loaded where Triton is
            continue
        for imported in imports(name, path, known):
            root = imported.name.split(".")[0]
            if root in CORE or root in sys.stdlib_module_names or imported.inside_function or imported.guarded:
                continue
            bad.append(f"{name}:{imported.line} imports {root} on import of {PACKAGE}, which needs torch alone")
    return bad


def layer_couplings(src: Path) -> list[str]:
    """Imports from one layer of the zoo to another; only `nn.functional` is common to them and it knows no layer."""
    zoo, known, bad = f"{PACKAGE}.nn", modules(src), []
    for name, path in known.items():
        if not name.startswith(zoo + "."):
            continue
        unit = name.split(".")[2]
        for imported in imports(name, path, known):
            parts = imported.name.split(".")
            if parts[:2] == zoo.split(".") and parts[2:3] not in ([unit], ["functional"]):
                bad.append(f"{name}:{imported.line} imports {imported.name}; layers do not import each other")
    return bad


def engine_couplings(src: Path) -> list[str]:
    """Files of `solvers/external` that import each other, and engines that are imported by two of them."""
    room, known, bad = f"{PACKAGE}.solvers.external", modules(src), []
    users: dict[str, set[str]] = {}
    for name, path in known.items():
        if not name.startswith(room + "."):
            continue
        for imported in imports(name, path, known):
            root = imported.name.split(".")[0]
            helper = imported.name.rpartition(".")[2].startswith("_")
            if imported.name.startswith(room) and not helper:
                bad.append(f"{name}:{imported.line} imports {imported.name}; one engine a file, blind to the others")
            elif not (root in CORE | {"numpy"} | sys.stdlib_module_names or imported.name.startswith("scipy.sparse")):
                users.setdefault(root, set()).add(name)
    return bad + [f"{root} is driven by {' and '.join(sorted(who))}" for root, who in users.items() if len(who) > 1]


def missing_tests(src: Path, tests: Path) -> list[str]:
    """Modules without the test file that mirrors them: `linalg/krylov.py` -> `tests/linalg/test_krylov.py`."""
    bad = []
    for name, path in modules(src).items():
        if path.name in ("__init__.py", "__main__.py") or name == f"{PACKAGE}.shapes":
            continue
        inner = path.relative_to(src / PACKAGE)
        mirror = tests / inner.parent / f"test_{inner.stem.lstrip('_')}.py"
        if not mirror.is_file():
            bad.append(f"{name} has no {mirror.relative_to(tests.parent)}")
    return bad


def oversized(src: Path) -> list[str]:
    """Files over 400 lines and functions over 60; a function's docstring is not counted against it."""
    bad = []
    for name, path in modules(src).items():
        text = path.read_text("utf-8")
        lines = len(text.splitlines())
        if lines > MAX_FILE:
            bad.append(f"{name} has {lines} lines, over {MAX_FILE}: split it by meaning")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, Function):
                length = _length(node)
                if length > MAX_FUNCTION:
                    bad.append(f"{name}:{node.lineno} {node.name} has {length} lines, over {MAX_FUNCTION}")
    return bad


def _length(node: Function) -> int:
    total = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node) is not None:
        docstring = node.body[0]
        total -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return total


def prints(src: Path) -> list[str]:
    """Calls of print outside the experiments."""
    return [
        f"{name}:{node.lineno} prints"
        for name, path in modules(src).items()
        if not name.startswith(f"{PACKAGE}.experiments")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def keys_in_code(src: Path) -> dict[str, set[Path]]:
    """Claim key -> the modules whose docstring (or a docstring inside) carries `DDN[key]`."""
    found: dict[str, set[Path]] = {}
    for path in modules(src).values():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | Function):
                for key in KEY.findall(ast.get_docstring(node) or ""):
                    found.setdefault(key, set()).add(path)
    return found


def keys_in_tests(tests: Path) -> dict[str, set[Path]]:
    """Claim key -> the test files that carry `DDN[key]`, except the tests of these rules with their made-up keys."""
    found: dict[str, set[Path]] = {}
    for path in sorted(tests.rglob("*.py")):
        if path.relative_to(tests).parts[0] != "house":
            for key in KEY.findall(path.read_text("utf-8")):
                found.setdefault(key, set()).add(path)
    return found


def keys_in_table(table: Path) -> dict[str, list[str]]:
    """Claim key -> the cells of its row, from the markdown table of claims."""
    found: dict[str, list[str]] = {}
    for line in table.read_text("utf-8").splitlines():
        match = ROW.match(line)
        if match and match[1] != "key" and not set(match[1]) <= {"-"}:
            found[match[1]] = [cell.strip() for cell in line.strip().strip("|").split("|")]
    return found


def loose_claims(src: Path, tests: Path, table: Path) -> list[str]:
    """Claim keys missing from the code, the tests or the table, and files a row names that are not there."""
    places = {"code": keys_in_code(src), "tests": keys_in_tests(tests), table.name: keys_in_table(table)}
    bad = []
    for key in sorted(set().union(*places.values())):
        absent = [place for place, keys in places.items() if key not in keys]
        if absent:
            bad.append(f"DDN[{key}] is missing from {' and '.join(absent)}")
    for key, cells in keys_in_table(table).items():
        for name in re.findall(r"[\w./-]+\.(?:py|md)\b", " ".join(cells)):
            roots = (src / PACKAGE, tests, table.parent.parent, tests.parent)
            if not any((root / name).is_file() for root in roots):
                bad.append(f"the row of DDN[{key}] names {name}, which does not exist")
    return bad
