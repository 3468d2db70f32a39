from __future__ import annotations

from pathlib import Path

import pytest

from tests.index.structure.world import GO, JAVA, PYTHON, RUST, SCRIPT, ask, places


async def test_a_definition_is_found_with_its_signature(tmp_path: Path) -> None:
    answer = await ask(tmp_path, PYTHON, "definition", "Cart.add")
    assert [place.text for place in answer.places] == ["def add(self, item)"]
    assert answer.definitions[0].qualified_name == "Cart.add"
    assert answer.definitions[0].kind == "method"


async def test_references_say_how_sure_they_are(tmp_path: Path) -> None:
    answer = await ask(tmp_path, PYTHON, "references", "Cart.add")
    assert places(answer) == [
        "shop/checkout.py:10 type",
        "shop/checkout.py:14 type",
        "shop/checkout.py:15 name",
    ]


async def test_a_set_is_no_cart(tmp_path: Path) -> None:
    answer = await ask(tmp_path, PYTHON, "references", "Cart.add")
    assert not any(place.line == 23 for place in answer.places)


async def test_an_alias_and_a_dotted_module_are_followed_and_a_local_name_is_not(
    tmp_path: Path,
) -> None:
    answer = await ask(tmp_path, PYTHON, "references", "price")
    assert places(answer) == [
        "shop/cart.py:22 same file",
        "shop/checkout.py:2 imported",
        "shop/checkout.py:14 imported",
        "shop/checkout.py:16 imported",
    ]


async def test_a_class_is_followed_through_what_a_package_re_exports(tmp_path: Path) -> None:
    answer = await ask(tmp_path, PYTHON, "callers", "Cart")
    assert places(answer) == ["shop/checkout.py:24 imported"]
    assert answer.places[0].symbol == "unrelated"


async def test_callees_of_a_method_and_what_is_not_of_this_tree(tmp_path: Path) -> None:
    answer = await ask(tmp_path, PYTHON, "callees", "Cart.total")
    assert [place.symbol for place in answer.places] == ["price"]
    outside = await ask(tmp_path, PYTHON, "callees", "price")
    assert outside.outside == ["json.loads"]


@pytest.mark.parametrize("name", ["shop/cart.py", "shop.cart"])
async def test_importers_of_a_file_or_a_module(tmp_path: Path, name: str) -> None:
    answer = await ask(tmp_path, PYTHON, "importers", name)
    assert [place.split()[0] for place in places(answer)] == [
        "shop/__init__.py:1",
        "shop/checkout.py:2",
        "shop/checkout.py:3",
        "tests/test_cart.py:1",
    ]


async def test_importers_of_a_symbol(tmp_path: Path) -> None:
    answer = await ask(tmp_path, PYTHON, "importers", "Cart")
    assert {place.path for place in answer.places} == {"shop/__init__.py", "shop/checkout.py"}


async def test_subclasses_and_overrides(tmp_path: Path) -> None:
    classes = await ask(tmp_path, PYTHON, "implementations", "Base")
    assert [place.symbol for place in classes.places] == ["Cart", "Fake"]
    methods = await ask(tmp_path, PYTHON, "implementations", "Base.total")
    assert [place.symbol for place in methods.places] == ["Cart.total", "Fake.total"]


async def test_a_library_is_matched_by_name_and_says_so(tmp_path: Path) -> None:
    answer = await ask(tmp_path, PYTHON, "references", "json.loads")
    assert places(answer) == ["shop/cart.py:26 name"]
    assert "not defined in this tree" in (answer.note or "")


async def test_typescript_imports_re_exports_and_default_exports(tmp_path: Path) -> None:
    calls = await ask(tmp_path, SCRIPT, "callers", "Cart.add")
    assert places(calls) == ["src/pay.tsx:4 type", "src/pay.tsx:5 name"]
    priced = await ask(tmp_path, SCRIPT, "references", "price")
    assert "src/cart.ts:5 same file" in places(priced)
    assert "src/index.ts:1 imported" in places(priced)
    classes = await ask(tmp_path, SCRIPT, "implementations", "Priced")
    assert [place.symbol for place in classes.places] == ["Cart"]
    importers = await ask(tmp_path, SCRIPT, "importers", "src/cart.ts")
    assert {place.path for place in importers.places} == {"src/index.ts", "src/pay.tsx"}


async def test_go_methods_packages_and_interfaces(tmp_path: Path) -> None:
    calls = await ask(tmp_path, GO, "callers", "Cart.Add")
    assert places(calls) == ["main.go:6 type"]
    total = await ask(tmp_path, GO, "callers", "Cart.Total")
    assert places(total) == ["cart/cart.go:13 type"]
    types = await ask(tmp_path, GO, "implementations", "Priced")
    assert [place.symbol for place in types.places] == ["Cart"]
    made = await ask(tmp_path, GO, "callers", "New")
    assert places(made) == ["main.go:10 imported"]
    importers = await ask(tmp_path, GO, "importers", "cart/cart.go")
    assert places(importers) == ["main.go:3 imported"]


async def test_rust_traits_impls_and_macros(tmp_path: Path) -> None:
    calls = await ask(tmp_path, RUST, "callers", "Cart.add")
    assert places(calls) == ["src/pay.rs:4 type"]
    types = await ask(tmp_path, RUST, "implementations", "Priced")
    assert [place.symbol for place in types.places] == ["Cart"]
    helper = await ask(tmp_path, RUST, "callers", "helper")
    assert places(helper) == ["src/pay.rs:5 same file"]
    importers = await ask(tmp_path, RUST, "importers", "src/cart.rs")
    assert "src/pay.rs:1 imported" in places(importers)


async def test_java_fields_packages_and_own_methods(tmp_path: Path) -> None:
    calls = await ask(tmp_path, JAVA, "callers", "Cart.add")
    assert places(calls) == ["src/desk/Desk.java:9 type", "src/desk/Desk.java:10 name"]
    own = await ask(tmp_path, JAVA, "callers", "Cart.total")
    assert places(own) == ["src/shop/Cart.java:7 same file"]
    types = await ask(tmp_path, JAVA, "implementations", "Priced")
    assert [place.symbol for place in types.places] == ["Cart"]
    importers = await ask(tmp_path, JAVA, "importers", "Cart")
    assert places(importers) == ["src/desk/Desk.java:3 imported"]
