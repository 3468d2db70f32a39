from __future__ import annotations

import pytest

from evercontext.index.structure.imports import Import
from evercontext.index.structure.module_paths import ModulePaths

PATHS = (
    "src/shop/__init__.py",
    "src/shop/cart.py",
    "src/shop/json.py",
    "src/shop/sub/__init__.py",
    "web/app.ts",
    "web/lib/index.ts",
    "web/lib/cart.tsx",
    "cart/cart.go",
    "cart/total.go",
    "main.go",
    "crate/src/lib.rs",
    "crate/src/a/mod.rs",
    "crate/src/a/b.rs",
    "java/src/shop/Cart.java",
    "java/src/shop/Item.java",
)
MODULES = ModulePaths(PATHS)


@pytest.mark.parametrize(
    ("path", "module", "name", "files"),
    [
        ("x.py", "shop.cart", "Cart", ["src/shop/cart.py"]),
        ("x.py", "shop", "Cart", ["src/shop/__init__.py"]),
        ("x.py", "json", None, []),
        ("src/shop/sub/__init__.py", "..cart", "Cart", ["src/shop/cart.py"]),
        ("src/shop/cart.py", ".", "Cart", ["src/shop/__init__.py"]),
        ("web/app.ts", "./lib", "X", ["web/lib/index.ts"]),
        ("web/app.ts", "./lib/cart.js", "X", ["web/lib/cart.tsx"]),
        ("web/app.ts", "@/lib/cart", "X", ["web/lib/cart.tsx"]),
        ("web/app.ts", "react", "X", []),
        ("main.go", "example.com/shop/cart", None, ["cart/cart.go", "cart/total.go"]),
        ("crate/src/lib.rs", "crate::a::b", "X", ["crate/src/a/b.rs"]),
        ("crate/src/a/b.rs", "super", "X", ["crate/src/a/mod.rs"]),
        ("crate/src/a/b.rs", "std::fmt", "X", []),
        ("java/src/desk/Desk.java", "shop", "Cart", ["java/src/shop/Cart.java"]),
        (
            "java/src/desk/Desk.java",
            "shop",
            "*",
            ["java/src/shop/Cart.java", "java/src/shop/Item.java"],
        ),
        ("java/src/desk/Desk.java", "java.util", "List", []),
    ],
)
def test_an_import_names_the_files_of_the_tree_that_fit(
    path: str, module: str, name: str | None, files: list[str]
) -> None:
    assert MODULES.resolve(Import(name or module, module, name, 1), path) == files


def test_a_name_can_be_a_module_of_its_own() -> None:
    assert MODULES.submodule(Import("cart", "shop", "cart", 1), "x.py") == ["src/shop/cart.py"]
    assert MODULES.submodule(Import("b", "crate::a", "b", 1), "crate/src/lib.rs") == [
        "crate/src/a/b.rs"
    ]
    assert MODULES.submodule(Import("x", "./lib", "x", 1), "web/app.ts") == []
