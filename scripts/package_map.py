"""Draw which package imports which, from the source, into `docs/images/packages.svg`.

`python scripts/package_map.py` writes the picture, `--check` fails if it is out of date. Packages
stand in the order of the layers in `pyproject.toml`: a mark above the diagonal would be an import
upwards.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
SOURCE = HERE / "src" / "evercontext"
PICTURE = HERE / "docs" / "images" / "packages.svg"

CELL, LEFT, TOP = 22, 132, 104
INK, FAINT, BAND, MARK = "#1f2933", "#cbd2d9", "#f1f4f7", "#2563a8"


def main() -> int:
    """Write the picture, or compare it with the one that is there."""
    picture = draw(layers(), imports())
    if "--check" not in sys.argv[1:]:
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        PICTURE.write_text(picture, encoding="utf-8")
        return 0
    if PICTURE.is_file() and PICTURE.read_text(encoding="utf-8") == picture:
        return 0
    print("docs/images/packages.svg is out of date: python scripts/package_map.py", file=sys.stderr)
    return 1


def layers() -> list[list[str]]:
    """Read the layers from the configuration of the import linter, top first."""
    config = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    (layered,) = (contract for contract in contracts if contract["type"] == "layers")
    return [re.findall(r"\w+", layer) for layer in layered["layers"]]


def imports() -> dict[tuple[str, str], bool]:
    """Map each pair of importer and imported package to whether loading the one loads the other."""
    pairs: dict[tuple[str, str], bool] = {}
    for path in SOURCE.rglob("*.py"):
        importer = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        module = ast.parse(path.read_text(encoding="utf-8"))
        for imported, at_load in _imported(module, at_load=True):
            if imported != importer:
                pair = (importer, imported)
                pairs[pair] = pairs.get(pair, False) or at_load
    return pairs


def _imported(node: ast.AST, at_load: bool) -> Iterator[tuple[str, bool]]:
    """Yield the packages of ours that a module imports, and whether it does so when loaded."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ImportFrom) and child.module == "evercontext":
            yield from ((alias.name, at_load) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and (child.module or "").startswith("evercontext."):
            yield str(child.module).split(".")[1], at_load
        elif isinstance(child, ast.Import):
            names = [alias.name for alias in child.names if alias.name.startswith("evercontext.")]
            yield from ((name.split(".")[1], at_load) for name in names)
        else:
            late = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or _for_types(child)
            yield from _imported(child, at_load and not late)


def _for_types(node: ast.AST) -> bool:
    """Return whether a block is read by type checkers alone."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def draw(rows: list[list[str]], pairs: dict[tuple[str, str], bool]) -> str:
    """Return the picture: a row for each importer, a column for each package it may import."""
    names = [name for layer in rows for name in layer]
    place = {name: number for number, name in enumerate(names)}
    side = CELL * len(names)
    height = TOP + side + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + side + 48} {height}"'
        f' font-family="system-ui, sans-serif" font-size="13" fill="{INK}">',
        "<title>Packages of EverContext and what each imports</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *_bands(rows, side),
    ]
    for name, number in place.items():
        middle = CELL * number + CELL // 2
        parts.append(
            f'<text x="{LEFT - 8}" y="{TOP + middle + 4}" text-anchor="end">{name}</text>'
            f'<text transform="translate({LEFT + middle + 4} {TOP - 8}) rotate(-55)">{name}</text>'
        )
        corner = f'x="{LEFT + CELL * number}" y="{TOP + CELL * number}"'
        parts.append(f'<rect {corner} width="{CELL}" height="{CELL}" fill="{FAINT}"/>')
    for (importer, imported), at_load in sorted(pairs.items()):
        if importer in place and imported in place:
            across = LEFT + CELL * place[imported] + CELL // 2
            down = TOP + CELL * place[importer] + CELL // 2
            fill = MARK if at_load else "none"
            parts.append(
                f'<circle cx="{across}" cy="{down}" r="5" fill="{fill}" stroke="{MARK}">'
                f"<title>{importer} imports {imported}</title></circle>"
            )
    parts += [*_legend(TOP + side + 24), "</svg>"]
    return "\n".join(parts) + "\n"


def _bands(rows: list[list[str]], side: int) -> Iterator[str]:
    """Yield a band for every second layer, so that packages on one layer are seen together."""
    start = 0
    for number, layer in enumerate(rows):
        height = CELL * len(layer)
        if number % 2 == 0:
            yield (
                f'<rect x="0" y="{TOP + start}" width="{LEFT + side}" height="{height}"'
                f' fill="{BAND}"/>'
            )
        start += height


def _legend(y: int) -> Iterator[str]:
    """Yield what the marks mean."""
    yield f'<circle cx="20" cy="{y - 4}" r="5" fill="{MARK}" stroke="{MARK}"/>'
    yield f'<text x="32" y="{y}">the row imports the column</text>'
    yield f'<circle cx="232" cy="{y - 4}" r="5" fill="none" stroke="{MARK}"/>'
    yield f'<text x="244" y="{y}">only when first needed, or for types</text>'


if __name__ == "__main__":
    sys.exit(main())
