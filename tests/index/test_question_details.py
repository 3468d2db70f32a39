from __future__ import annotations

import pytest

from evercontext.index.question_details import read_details, split

_TRACE = "Traceback (most recent call last):"


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("how the cart works", "how the cart works"),
        ("# Cart loses items\n### Version\n1.2", "Cart loses items"),
        ("Look why the\ncart loses items.\n\nIt does.", "Look why the cart loses items."),
        ("カートが空になる。\n\n再現手順", "カートが空になる。"),
        ("The cart is empty. " + "It was full before. " * 30, "The cart is empty."),
        (f"{_TRACE}\n  File \"a.py\", line 1\nKeyError: 'total'\n", "KeyError: 'total'"),
    ],
)
def test_the_first_line_or_sentence_is_meant(text: str, head: str) -> None:
    assert split(text)[0] == head


def test_frames_of_many_languages_are_paths_with_their_lines() -> None:
    text = """
    File "/usr/lib/python3/site-packages/shop/cart.py", line 3, in total
    at com.shop.Cart.total(Cart.java:41)
    at total (C:\\shop\\src\\cart.ts:7:12)
    panicked at src/cart.rs:9:5, see https://example.org/blob/main/lib/cart.rb#L11
    e.g. this and version 1.2.3
    """
    assert read_details(text).paths == {
        "usr/lib/python3/site-packages/shop/cart.py": (3,),
        "Cart.java": (41,),
        "shop/src/cart.ts": (7,),
        "src/cart.rs": (9,),
        "example.org/blob/main/lib/cart.rb": (11,),
    }


def test_what_is_written_like_a_name_is_one() -> None:
    names = read_details("Calling `checkout` then add_item() on a ShoppingCart of items").names
    assert set(names) == {"checkout", "add_item", "ShoppingCart"}


def test_a_path_that_is_named_ever_again_is_one_with_few_lines() -> None:
    """A log of 50,000 frames of one file is read in one go, and each line counts once."""
    text = "".join(f"cart.py:{n % 1000}\nshop.py:7\n" for n in range(50_000))
    paths = read_details(text).paths
    assert paths["shop.py"] == (7,)
    assert paths["cart.py"] == tuple(range(50))
