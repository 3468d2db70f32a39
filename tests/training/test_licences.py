"""What may be learned from, and what must never be."""

from __future__ import annotations

import pytest
from training.dataset import package_key, split_of
from training.exclusions import is_benchmark_package, is_benchmark_path
from training.licences import debian_licences, permits, python_licence

COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: somebody
License: Expat

Files: src/vendor/*
Copyright: somebody else
License: {second}

Files: debian/*
Copyright: a packager
License: GPL-2+
"""


@pytest.mark.parametrize(
    "name",
    [
        "MIT",
        "Expat",
        "BSD-3-Clause",
        "Apache-2.0 OR MIT",
        "GPL-2+ or Expat",
        "ISC",
        "PSF-2.0",
        "0BSD",
    ],
)
def test_permissive_licences_pass(name: str) -> None:
    assert permits(name)


@pytest.mark.parametrize(
    "name",
    [
        "GPL-3",
        "LGPL-2.1+",
        "MPL-2.0",
        "Expat and GPL-2+",
        "CC-BY-SA-4.0",
        "CC-BY-NC-4.0",
        "BUSL-1.1",
        "",
    ],
)
def test_others_do_not(name: str) -> None:
    assert not permits(name)


def test_every_stanza_of_upstream_counts() -> None:
    assert debian_licences(COPYRIGHT.format(second="BSD-2-clause")) == ["Expat", "BSD-2-clause"]
    named = debian_licences(COPYRIGHT.format(second="LGPL-2.1+"))
    assert named is not None
    assert not all(map(permits, named))


def test_prose_is_no_licence() -> None:
    assert debian_licences("This package was debianized by somebody. GPL or so.") is None
    assert python_licence({"license": None, "classifiers": []}) is None


def test_registry_metadata_is_read() -> None:
    assert python_licence({"license_expression": "Apache-2.0"}) == "Apache-2.0"
    classifiers = ["License :: OSI Approved :: GNU General Public License v3 (GPLv3)"]
    assert python_licence({"license": "MIT", "classifiers": classifiers}) is None


def test_benchmark_repositories_stay_out() -> None:
    assert is_benchmark_package("golang-github-spf13-cobra-dev")
    assert is_benchmark_package("python3-aiohttp")
    assert is_benchmark_path("pip/_vendor/requests/models.py")
    assert not is_benchmark_package("python3-attr")


def test_a_package_is_on_one_side_in_every_registry() -> None:
    names = ["python3-numpy", "numpy", "librust-rand-dev", "librust-rand-0.8-dev", "rand"]
    assert [package_key(name) for name in names] == ["numpy", "numpy", "rand", "rand", "rand"]
    assert split_of("python3-numpy") == split_of("numpy")
