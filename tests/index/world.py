"""Small trees and open indexes for the tests of this room."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from evercontext.index.code_search import CodeIndex

SHOP = {
    "shop/cart.py": '''"""The cart: what a customer wants to buy."""


class Cart:
    """Holds items until checkout."""

    def __init__(self) -> None:
        self.items = []

    def add_item(self, item, quantity=1):
        """Put an item into the cart."""
        self.items.append((item, quantity))

    def total_price(self, catalog):
        """Sum the prices of all items."""
        return sum(catalog.price_of(item) * n for item, n in self.items)
''',
    "shop/payment.py": '''"""Charging cards."""


class PaymentGateway:
    """Talks to the bank."""

    def charge(self, card, amount):
        """Take money from a credit card."""
        return self.client.post("/charge", card, amount)


def refund(payment):
    """Give the money back."""
    return payment.reverse()
''',
    "web/routes.ts": """export interface Route { path: string }

export function registerRoute(path: string, handler: () => void): Route {
  return { path };
}

export class Router {
  match(url: string): Route | undefined {
    return this.routes.find((r) => url.startsWith(r.path));
  }
}
""",
    "tests/test_cart.py": "from shop.cart import Cart\n\n\ndef test_total():\n    assert Cart()\n",
    "README.md": "# Shop\n\nA small shop.\n\n## Payment\n\nCards are charged by the gateway.\n",
}


def write(root: Path, files: Mapping[str, str]) -> Path:
    """Write files below a root."""
    for name, content in files.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    return root


@asynccontextmanager
async def opened(root: Path, folder: Path | None = None) -> AsyncIterator[CodeIndex]:
    """An index of a tree, without vectors: words are enough and quicker to load."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    index = await CodeIndex.open(root, folder=folder, use_vectors=False)
    try:
        yield index
    finally:
        await index.close()


async def fingerprint_of_rebuild(root: Path, folder: Path) -> str:
    """The fingerprint of an index of the same tree, built from nothing."""
    async with opened(root, folder) as index:
        await index.update()
        return await index.table.fingerprint()
