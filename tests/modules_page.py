"""Write docs/modules.md, the list of all modules, from the first line of each docstring.

`make architecture` runs it; a test in tests/docs fails where the page is stale.
"""

import ast
from itertools import groupby
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
PACKAGE, PAGE = _ROOT / "pymc_dpsplit", _ROOT / "docs/modules.md"

_HEAD = """# Modules

Every module of the package with the first line of its docstring. `make architecture` writes
this page: edit the docstrings, not the page. How the folders fit together is in
[architecture.md](architecture.md).
"""


def page(package: Path) -> str:
    """Return the page that lists the modules of the package in the folder `package`."""
    sources = sorted(package.rglob("*.py"), key=lambda path: (path.parent, path.name))
    lines = [_HEAD]
    for folder, modules in groupby(sources, key=lambda path: path.parent):
        named = folder.relative_to(package.parent).as_posix()
        lines += [f"## {named}", ""]
        lines += [
            f"- [`{path.name}`](../{named}/{path.name}): {_first_line(path)}" for path in modules
        ]
        lines.append("")
    return "\n".join(lines)


def _first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not docstring:
        raise SystemExit(f"{path.name} has no docstring; say in one line what the module is for.")
    return docstring.splitlines()[0]


if __name__ == "__main__":
    PAGE.write_text(page(PACKAGE), encoding="utf-8")
