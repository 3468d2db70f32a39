"""A small shop in five languages, and questions over it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from evercontext.index.structure.questions import StructureAnswer, StructureQuestions
from evercontext.index.structure.source_tree import SourceTree
from tests.index.world import opened, write

PYTHON = {
    "shop/__init__.py": "from .cart import Cart as Cart\n",
    "shop/cart.py": """import json

RATE = 0.2


class Base:
    def total(self):
        return 0


class Cart(Base):
    size: int = 0

    def __init__(self):
        self.items = []

    def add(self, item):
        self.items.append(item)
        return self.total()

    def total(self):
        return price(self.items) * RATE


def price(items):
    return json.loads(items)
""",
    "shop/checkout.py": """from shop import Cart
from shop.cart import price as cost
import shop.cart


class Paid:
    cart: Cart

    def pay(self):
        self.cart.add(1)


def pay(cart: Cart, other):
    cart.add(cost(1))
    other.add(2)
    shop.cart.price(3)
    price = 4
    return price


def unrelated():
    names = set()
    names.add("x")
    return pay(Cart(), names)
""",
    "tests/test_cart.py": """from shop.cart import Base


class Fake(Base):
    def total(self):
        return 1


def test_total():
    assert Fake().total() == 1
""",
}

SCRIPT = {
    "src/cart.ts": """export interface Priced { total(): number }
export class Cart implements Priced {
  private items: Item[] = [];
  add(item: Item): void { this.items.push(item); this.total(); }
  total(): number { return price(this.items); }
}
export function price(items: Item[]): number { return items.length; }
export default class Item {}
""",
    "src/index.ts": "export { Cart, price as cost } from './cart';\nexport * from './cart.js';\n",
    "src/pay.tsx": """import { Cart, cost } from '.';
import Thing from './cart';
export const pay = (cart: Cart, other: any) => {
  cart.add(new Thing());
  other.add(1);
  return cost([]);
};
""",
}

GO = {
    "go.mod": "module example.com/shop\n",
    "cart/cart.go": """package cart

type Priced interface {
	Total() int
}

type Cart struct {
	items []int
}

func (c *Cart) Add(item int) {
	c.items = append(c.items, item)
	c.Total()
}

func New() *Cart { return &Cart{} }
""",
    "cart/total.go": "package cart\n\nfunc (c *Cart) Total() int {\n\treturn len(c.items)\n}\n",
    "main.go": """package main

import "example.com/shop/cart"

func Pay(c *cart.Cart) {
	c.Add(1)
}

func main() {
	Pay(cart.New())
}
""",
}

RUST = {
    "src/lib.rs": "pub mod cart;\npub mod pay;\n",
    "src/cart.rs": """pub trait Priced {
    fn total(&self) -> usize;
}

pub struct Cart {
    items: Vec<u32>,
}

impl Cart {
    pub fn new() -> Self {
        Cart { items: Vec::new() }
    }

    pub fn add(&mut self, item: u32) {
        self.items.push(item);
        self.total();
    }
}

impl Priced for Cart {
    fn total(&self) -> usize {
        self.items.len()
    }
}
""",
    "src/pay.rs": """use crate::cart::{Cart, Priced};

pub fn pay(cart: &mut Cart) -> usize {
    cart.add(1);
    println!("{}", helper());
    cart.total()
}

fn helper() -> usize {
    Cart::new().total()
}
""",
}

JAVA = {
    "src/shop/Priced.java": "package shop;\n\npublic interface Priced {\n    int total();\n}\n",
    "src/shop/Cart.java": """package shop;

public class Cart implements Priced {
    private int size;

    public void add(int item) {
        total();
    }

    public int total() {
        return size;
    }
}
""",
    "src/desk/Desk.java": """package desk;

import shop.Cart;

class Desk {
    private final Cart cart = new Cart();

    void pay(Object other) {
        cart.add(1);
        other.add(2);
    }
}
""",
}


@asynccontextmanager
async def parsed(root: Path, files: Mapping[str, str]) -> AsyncIterator[SourceTree]:
    """The parsed files of a tree."""
    write(root, files)
    async with opened(root) as index:
        await index.update()
        async with index.corpus() as corpus:
            yield SourceTree(corpus, index.indexer.reader)


async def ask(
    root: Path, files: Mapping[str, str], question: str, name: str, path: str | None = None
) -> StructureAnswer:
    """The answer to one question about a tree."""
    async with parsed(root, files) as tree:
        return StructureQuestions(tree).ask(question, name, path)


def places(answer: StructureAnswer) -> list[str]:
    """The places of an answer, as ``path:line certainty``."""
    return [f"{place.path}:{place.line} {place.certainty}" for place in answer.places]
