"""The house style, as far as a machine can judge it.

Every rule is a function of sources that returns the faults it finds; each is run on the
package, where it must find none, and on a specimen that breaks it.
"""

import ast
import inspect
import re
import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import pymc_dpsplit

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {
    path.relative_to(ROOT / "pymc_dpsplit").as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "pymc_dpsplit").rglob("*.py"))
}

LONGEST_FUNCTION = 60  # lines, the docstring not counted
LONGEST_MODULE = 450
TALKERS = {"cli.py", "demo.py"}
NUMBA_COMPILERS = {"njit", "jit", "vectorize", "guvectorize", "stencil", "cfunc"}
FUNCTION_NODES = (ast.FunctionDef, ast.AsyncFunctionDef)

# --- docstrings ---------------------------------------------------------------------------


def sections_of(docstring: str) -> dict[str, list[str]]:
    """Lines of every numpydoc section, by its title."""
    lines = inspect.cleandoc(docstring).splitlines()
    rules = [i for i, line in enumerate(lines) if i and line and set(line) == {"-"}]
    bounds = pairwise([*rules, len(lines) + 1])
    return {lines[i - 1]: lines[i + 1 : end - 1] for i, end in bounds}


def documented_arguments(docstring: str) -> set[str]:
    """Names under Parameters and Other Parameters, without the stars."""
    sections = sections_of(docstring)
    entries = sections.get("Parameters", []) + sections.get("Other Parameters", [])
    heads = [line.split(" : ")[0] for line in entries if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def arguments_of(public: Callable[..., Any]) -> set[str]:
    """Names of the arguments a user may give to a function or to a class."""
    if not inspect.isclass(public):
        return set(inspect.signature(public).parameters)
    for base in public.__mro__:
        maker = vars(base).get("__init__", vars(base).get("__new__"))
        maker = getattr(maker, "__func__", maker)  # __new__ is wrapped as a static method
        if isinstance(maker, FunctionType):
            return set(list(inspect.signature(maker).parameters)[1:])
    return set()


def docstring_faults(name: str, public: Callable[..., Any]) -> list[str]:
    """Compare the docstring of a public function or class with its arguments."""
    # Not inspect.getdoc, by which a class without a docstring shows that of its base.
    docstring = public.__doc__
    if not docstring:
        return [f"{name}: no docstring"]
    faults = [] if "Examples" in sections_of(docstring) else [f"{name}: no Examples"]
    arguments, documented = arguments_of(public), documented_arguments(docstring)
    faults += [f"{name}: argument {a} is not documented" for a in sorted(arguments - documented)]
    faults += [f"{name}: documents {a}, no argument" for a in sorted(documented - arguments)]
    return faults


def test_public_names_are_documented():
    public = {name: getattr(pymc_dpsplit, name) for name in pymc_dpsplit.__all__}
    callables = {name: value for name, value in public.items() if callable(value)}
    assert [fault for name in callables for fault in docstring_faults(name, callables[name])] == []


class Documented:
    """A specimen.

    Parameters
    ----------
    size, shape : int
        Two at once.
    *rest, **options : object
        With stars.

    Returns
    -------
    nothing : None
        Not an argument.

    Examples
    --------
    >>> Documented(1, 2)
    """

    def __init__(self, size, shape, *rest, **options):
        pass


class Undocumented(Documented):
    pass


def outdated(size):
    """Name an argument that is gone.

    Parameters
    ----------
    length : int
        Formerly.
    """
    return size


def test_documented_class_passes():
    assert docstring_faults("Documented", Documented) == []


@pytest.mark.control
def test_faulty_docstrings_are_reported():
    assert docstring_faults("Undocumented", Undocumented) == ["Undocumented: no docstring"]
    assert docstring_faults("outdated", outdated) == [
        "outdated: no Examples",
        "outdated: argument size is not documented",
        "outdated: documents length, no argument",
    ]


# --- sources ------------------------------------------------------------------------------


def functions_of(source: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, FUNCTION_NODES):
            yield node


def stale_parameters(where: str, source: str) -> list[str]:
    """Return the functions that document an argument they do not have.

    A kernel may leave out the arguments that all kernels share.
    """
    faults = []
    for node in functions_of(source):
        spec = node.args
        named = [*spec.posonlyargs, *spec.args, spec.vararg, *spec.kwonlyargs, spec.kwarg]
        arguments = {argument.arg for argument in named if argument} - {"self", "cls"}
        documented = documented_arguments(ast.get_docstring(node) or "")
        stale = sorted(documented - arguments)
        faults += [f"{where}:{node.lineno}: {node.name} documents {name}" for name in stale]
    return faults


def prints(where: str, source: str) -> list[str]:
    """Return the calls of print outside the command line."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    names = [(node.lineno, node.func.id) for node in calls if isinstance(node.func, ast.Name)]
    silent = where not in TALKERS
    return [f"{where}:{line}: print" for line, name in names if silent and name == "print"]


def long_functions(where: str, source: str) -> list[str]:
    """Return the functions that do not fit a screen."""
    faults = []
    for node in functions_of(source):
        length = node.end_lineno - node.lineno + 1
        if ast.get_docstring(node) is not None:
            length -= node.body[0].end_lineno - node.body[0].lineno + 1
        if length > LONGEST_FUNCTION:
            faults.append(f"{where}:{node.lineno}: {node.name} has {length} lines")
    return faults


def long_modules(where: str, source: str) -> list[str]:
    """Return the module if it is too long to be one idea."""
    length = len(source.splitlines())
    return [f"{where}: {length} lines"] if length > LONGEST_MODULE else []


def stray_numba_options(where: str, source: str) -> list[str]:
    """Return the uses of a numba compiler outside `kernels/jit.py`, where options are chosen."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "numba":
            names += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names += [(node.lineno, node.attr)] if node.value.id in {"numba", "nb"} else []
    stray = where != "kernels/jit.py"
    return [f"{where}:{i}: numba.{name}" for i, name in names if stray and name in NUMBA_COMPILERS]


def letters_beyond_ascii(where: str, source: str) -> list[str]:
    """Return the lines that are not plain ASCII."""
    lines = enumerate(source.splitlines(), start=1)
    return [f"{where}:{i}: not ASCII" for i, line in lines if not line.isascii()]


RULES: dict[Callable[[str, str], list[str]], str] = {
    stale_parameters: 'def f(a):\n    """F.\n\n    Parameters\n    ----------\n    a, c : int"""',
    prints: "def f():\n    print(1)",
    long_functions: "def f():\n" + "    f()\n" * LONGEST_FUNCTION,
    long_modules: "f()\n" * (LONGEST_MODULE + 1),
    stray_numba_options: "import numba\n\n@numba.njit(parallel=True)\ndef f(): ...",
    letters_beyond_ascii: "name = '\u03b1'",
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_source_rule_holds(rule):
    assert [fault for where, source in SOURCES.items() for fault in rule(where, source)] == []


@pytest.mark.control
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_source_rule_reports_its_breach(rule):
    assert len(rule("moves/specimen.py", RULES[rule])) == 1


# --- equations ----------------------------------------------------------------------------

# Equations of the method page are numbered by section, as "eq. (3.2)"; those of the literature are
# cited as "eq. 15", or after a reference mark.
CITATION = re.compile(
    r"(?<!\]_ )\beqs?\. (\([\d.]+\)(?:(?:-|, and | and |, )\([\d.]+\))*)", re.IGNORECASE
)
TAG = re.compile(r"\\tag\{([\d.]+)\}")
SECTION = re.compile(r"^## (\d+)\.", re.MULTILINE)


def equations_cited(source: str) -> set[str]:
    """Numbers of the equations of the method page that a source cites; ends of ranges only."""
    found = CITATION.findall(" ".join(source.split()))
    return {number for numbers in found for number in re.findall(r"\(([\d.]+)\)", numbers)}


def equations_defined(page: str) -> list[str]:
    """Numbers of the equations of the method page, in their order there."""
    return TAG.findall(page)


def numbers_by_section(page: str) -> list[str]:
    """Numbers that the equations of a page should have: its section, then from 1 up."""
    _, *parts = SECTION.split(page)
    return [
        f"{section}.{i + 1}"
        for section, text in zip(parts[::2], parts[1::2], strict=True)
        for i in range(len(TAG.findall(text)))
    ]


def method_page() -> str:
    return (ROOT / "docs" / "method.md").read_text("utf-8")


def test_equations_are_numbered_by_section():
    assert equations_defined(method_page()) == numbers_by_section(method_page())


@pytest.mark.control
def test_equation_out_of_order_is_found():
    page = "## 1. A\n$$ a \\tag{1.2} $$\n$$ b \\tag{1.1} $$\n"
    assert equations_defined(page) != numbers_by_section(page)


def test_cited_equations_exist():
    existing = set(equations_defined(method_page()))
    missing = {where: equations_cited(source) - existing for where, source in SOURCES.items()}
    assert {where: numbers for where, numbers in missing.items() if numbers} == {}


@pytest.mark.control
@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("as in eq. (3.1).", {"3.1"}),
        ("Eq.\n    (4.2), then", {"4.2"}),
        ("eq. (2.2)-(3.2)", {"2.2", "3.2"}),
        ("eqs. (1.3), (1.5) and (2.3)", {"1.3", "1.5", "2.3"}),
        ("eq. (7)", {"7"}),  # no number of ours
        ("Das (2014), eq. 15", set()),
        ("[1]_ eq. (20)", set()),
    ],
)
def test_citations_are_read(text, cited):
    assert equations_cited(text) == cited


# --- text files ---------------------------------------------------------------------------

# Folders of one machine, and places from which its packages came.
PRIVATE = re.compile(
    r"(?<![\w.~/-])/(?:home|root|Users|work|tmp)(?![\w-])|[A-Z]:\\Users"
    r"|\bfile:/{2}|(?:pypi|pythonhosted)\.org|--(?:extra-)?index[-]url|--find[-]links"
)


def project_files() -> list[Path]:
    """Files of the checkout that git does not ignore, or those of an unpacked sdist."""
    if not (ROOT / ".git").exists():
        tops = [path for path in ROOT.iterdir() if not path.name.startswith(".")]
        return [path for top in tops for path in (top, *top.rglob("*")) if path.is_file()]
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def private_places(text: str) -> list[str]:
    """Return the lines of a text that mean something on one machine only."""
    return [line for line in text.splitlines() if PRIVATE.search(line)]


def text_of(path: Path) -> str:
    """Text of a file; empty for a binary one."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def test_no_file_names_a_private_place():
    files = project_files()
    assert ROOT / "pyproject.toml" in files
    found = {path.name: private_places(text_of(path)) for path in files}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.control
@pytest.mark.parametrize(
    "parts",
    [
        ("see ", "/", "home/me/data.csv"),
        ("File '", "/", "tmp'"),
        ("C", ":", "\\Users\\me"),
        ("x @ file", ":", "//x.whl"),
        ("https://py", "pi", ".org/simple"),
        ("pip install -", "-index-url x"),
    ],
)
def test_private_place_is_reported(parts):
    assert private_places("".join(parts)) == ["".join(parts)]


@pytest.mark.parametrize("text", ["#!/usr/bin/env bash", "docs/work/page", "example.org/home/x"])
def test_public_place_passes(text):
    assert private_places(text) == []


# --- names of test files ------------------------------------------------------------------


def repeated_names(paths: list[Path]) -> list[str]:
    """Names of test files that two folders have: pytest collects only the first of them."""
    names = [path.name for path in paths if path.match("test_*.py")]
    return sorted({name for name in names if names.count(name) > 1})


def test_names_of_test_files_differ():
    assert repeated_names(project_files()) == []


@pytest.mark.control
def test_repeated_name_is_reported():
    files = ["unit/test_a.py", "exact/test_a.py", "exact/test_b.py", "a/data.py", "b/data.py"]
    assert repeated_names([Path(file) for file in files]) == ["test_a.py"]
