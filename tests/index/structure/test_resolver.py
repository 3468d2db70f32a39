from __future__ import annotations

from pathlib import Path

from evercontext.index.structure.resolver import NameTarget, Resolver
from tests.index.structure.world import GO, PYTHON, SCRIPT, parsed


async def test_a_name_is_followed_through_re_exports(tmp_path: Path) -> None:
    async with parsed(tmp_path, PYTHON) as tree:
        resolver = Resolver(tree)
        assert resolver.targets("shop/checkout.py", "Cart") == (NameTarget("shop/cart.py", "Cart"),)
        assert resolver.targets("shop/cart.py", "json") == ()
        assert resolver.targets("shop/cart.py", "nobody") is None


async def test_default_exports_and_stars_of_typescript(tmp_path: Path) -> None:
    async with parsed(tmp_path, SCRIPT) as tree:
        resolver = Resolver(tree)
        assert resolver.targets("src/pay.tsx", "Thing") == (NameTarget("src/cart.ts", "Item"),)
        assert resolver.targets("src/pay.tsx", "cost") == (NameTarget("src/cart.ts", "price"),)
        assert resolver.targets("src/index.ts", "Item") == (NameTarget("src/cart.ts", "Item"),)


async def test_files_that_import_each_other_end(tmp_path: Path) -> None:
    files = {"a.py": "from b import X\n", "b.py": "from a import X\n"}
    async with parsed(tmp_path, files) as tree:
        assert Resolver(tree).targets("a.py", "X") == ()


async def test_members_are_looked_for_in_supertypes(tmp_path: Path) -> None:
    async with parsed(tmp_path, PYTHON) as tree:
        resolver = Resolver(tree)
        fake = NameTarget("tests/test_cart.py", "Fake")
        assert resolver.bases(fake) == ("Base",)
        assert resolver.ancestors(fake) == {NameTarget("shop/cart.py", "Base")}
        assert resolver.find_member(fake, "total") == ("tests/test_cart.py", "Fake")
        assert resolver.find_member(fake, "nothing") is None


async def test_a_class_that_extends_itself_ends(tmp_path: Path) -> None:
    text = "class A(B): pass\nclass B(A): pass\n"
    async with parsed(tmp_path, {"a.py": text}) as tree:
        assert Resolver(tree).find_member(NameTarget("a.py", "A"), "x") is None


async def test_files_of_a_go_package_see_each_other(tmp_path: Path) -> None:
    async with parsed(tmp_path, GO) as tree:
        resolver = Resolver(tree)
        assert resolver.targets("cart/total.go", "Cart") == (NameTarget("cart/cart.go", "Cart"),)
