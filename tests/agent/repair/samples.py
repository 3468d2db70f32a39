"""Small projects that work: what the mutations break."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sample:
    """A project whose checks are green."""

    name: str
    language: str
    files: Mapping[str, str]
    settings: Mapping[str, str] = field(default_factory=dict)


SHOP = Sample(
    "shop",
    "python",
    {
        "shop/__init__.py": "",
        "shop/prices.py": '''"""Prices from a file. 価格表。"""

import json
from pathlib import Path

FOLDER = Path(__file__).parent.parent


def load_prices(name="data/prices.json"):
    """Read the price of every article."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def with_discount(price, percent=10):
    """Take some percent off."""
    return price - price * percent / 100
''',
        "shop/cart.py": '''"""A cart."""

from collections import Counter

from shop.prices import load_prices, with_discount


class Cart:
    """Articles and how many of each."""

    def __init__(self):
        self.articles = Counter()
        self.prices = load_prices()

    def add(self, article, count=1):
        """Put something in."""
        if article not in self.prices:
            raise KeyError(article)
        self.articles[article] += count

    def total(self, percent=0):
        """The sum, with a discount."""
        whole = sum(self.prices[name] * count for name, count in self.articles.items())
        return with_discount(whole, percent=percent)
''',
        "shop/report.py": '''"""A report of carts."""

from dataclasses import dataclass

from shop.cart import Cart


@dataclass
class Line:
    """One line."""

    article: str
    amount: float


def lines_of(cart):
    """One line for every article."""
    found = []
    for article, count in sorted(cart.articles.items()):
        found.append(Line(article, cart.prices[article] * count))
    return found


def summary(articles):
    """A whole report as text."""
    cart = Cart()
    for article in articles:
        cart.add(article)
    rows = [f"{line.article}: {line.amount:.2f}" for line in lines_of(cart)]
    return "\\n".join([*rows, f"total: {cart.total():.2f}"])
''',
        "data/prices.json": '{"tea": 3.0, "寿司": 12.5}\n',
        "tests/__init__.py": "",
        "tests/test_shop.py": """import unittest

from shop.cart import Cart
from shop.prices import load_prices, with_discount
from shop.report import lines_of, summary


class ShopTest(unittest.TestCase):
    def test_prices(self):
        assert load_prices()["tea"] == 3.0

    def test_discount(self):
        assert with_discount(200, percent=25) == 150

    def test_total(self):
        cart = Cart()
        cart.add("tea", count=2)
        cart.add("寿司")
        assert cart.total() == 18.5
        self.assertAlmostEqual(cart.total(percent=10), 16.65)

    def test_unknown(self):
        with self.assertRaises(KeyError):
            Cart().add("nothing")

    def test_lines(self):
        cart = Cart()
        cart.add("tea")
        assert [line.amount for line in lines_of(cart)] == [3.0]

    def test_summary(self):
        assert summary(["tea", "tea"]).endswith("total: 6.00")
""",
    },
)

CART_JS = Sample(
    "cart-js",
    "javascript",
    {
        "package.json": '{"name": "cart", "type": "module", "scripts": {"test": "node --test"}}\n',
        "src/prices.js": """import { readFileSync } from "node:fs";

const table = new Map(
  Object.entries(JSON.parse(readFileSync(new URL("./prices.json", import.meta.url), "utf8"))),
);

export function priceOf(article) {
  if (!table.has(article)) {
    throw new Error(`no price for ${article}`);
  }
  return table.get(article);
}

export function discount(amount, percent) {
  return amount - (amount * percent) / 100;
}
""",
        "src/prices.json": '{"tea": 3, "寿司": 12.5}\n',
        "src/cart.js": """import { discount, priceOf } from "./prices.js";

export class Cart {
  constructor() {
    this.articles = [];
  }

  insert(article) {
    this.articles.push(article);
    return this;
  }

  total(percent) {
    const amounts = this.articles.map((article) => priceOf(article));
    const whole = amounts.reduce((sum, amount) => sum + amount, 0);
    return discount(whole, percent);
  }
}

export function summary(articles) {
  const cart = new Cart();
  for (const article of articles) {
    cart.insert(article);
  }
  return `total: ${cart.total(0)}`;
}
""",
        "test/cart.test.js": """import assert from "node:assert/strict";
import { test } from "node:test";
import { Cart, summary } from "../src/cart.js";
import { discount, priceOf } from "../src/prices.js";

test("price", () => assert.equal(priceOf("tea"), 3));
test("discount", () => assert.equal(discount(200, 25), 150));
test("total", () => assert.equal(new Cart().insert("tea").insert("寿司").total(0), 15.5));
test("summary", () => assert.equal(summary(["tea", "tea"]), "total: 6"));
""",
    },
)

BANK_RS = Sample(
    "bank-rs",
    "rust",
    {
        "Cargo.toml": '[package]\nname = "bank"\nversion = "0.1.0"\nedition = "2021"\n',
        "src/lib.rs": """use std::collections::HashMap;

pub mod money;

use crate::money::with_interest;

#[derive(Default)]
pub struct Bank {
    accounts: HashMap<String, i64>,
}

impl Bank {
    pub fn deposit(&mut self, owner: &str, amount: i64) {
        *self.accounts.entry(owner.to_string()).or_insert(0) += amount;
    }

    pub fn balance(&self, owner: &str) -> i64 {
        let found = self.accounts.get(owner).copied();
        found.unwrap_or(0)
    }

    pub fn after_years(&self, owner: &str, years: u32) -> i64 {
        let balance = self.balance(owner);
        with_interest(balance, years)
    }
}
""",
        "src/money.rs": """pub fn with_interest(amount: i64, years: u32) -> i64 {
    let mut current = amount;
    for _ in 0..years {
        current = current + current / 10;
    }
    current
}
""",
        "tests/bank.rs": """use bank::money::with_interest;
use bank::Bank;

#[test]
fn deposits() {
    let mut bank = Bank::default();
    bank.deposit("花子", 100);
    bank.deposit("花子", 50);
    assert_eq!(bank.balance("花子"), 150);
}

#[test]
fn interest() {
    let mut bank = Bank::default();
    bank.deposit("a", 100);
    assert_eq!(bank.after_years("a", 2), 121);
    assert_eq!(with_interest(10, 1), 11);
}
""",
    },
)

SEEN = (SHOP, CART_JS, BANK_RS)
"""What the fixers were built with."""
