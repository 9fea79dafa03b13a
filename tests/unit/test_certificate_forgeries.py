"""Certificates made by hand to deceive, or to keep the checker busy: each is refused, with what is wrong."""

import gzip
import hashlib
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

import tessella
from tessella.certificates import verify
from tessella.certificates.verification import CHECKER


def _network(seed, shape=(2, 3, 2)):
    rng = np.random.default_rng(seed)
    layers = [(rng.normal(size=(after, before)), rng.normal(size=after)) for before, after in pairwise(shape)]
    return tessella.Network.from_arrays(layers, relu_output=True)


def _sealed(lines):
    """Lines that claim what they hold, with a checksum that is right."""
    counts = " ".join(str(sum(line.split()[:1] == [kind] for line in lines)) for kind in ("bound", "tree", "point"))
    data = "".join(f"{line}\n" for line in lines)
    return f"{data}sum {counts} {hashlib.sha256(data.encode()).hexdigest()}\n"


def _head(*units, inputs=("-0x1p+0 0x1p+0",), layers=1):
    """The first lines of a certificate, with units of its first layer."""
    return [
        "tessella certificate 1",
        f"box {len(inputs)} {layers}",
        *(f"input {one}" for one in inputs),
        f"layer {len(units)}",
        *units,
    ]


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """A network, its regions, and the lines of their certificate but the last."""
    path, network = tmp_path_factory.mktemp("honest") / "count.txt", _network(1)
    written = tessella.certify(network, (-1, 1), path)
    return network, written.regions, path.read_text().splitlines()[:-1]


def _said(tmp_path, lines):
    path = tmp_path / "forged.txt"
    path.write_text(_sealed(lines))
    return verify.check(str(path))


def _of(lines, kind):
    return [number for number, line in enumerate(lines) if line.split()[0] == kind]


def _body(lines):
    return lines[_of(lines, "tree")[0] :]


def test_a_side_that_is_none_takes_no_decision_back(tmp_path):
    """With two equal units, each would prove what the other one had been decided for: one region too many, on the border of the box."""
    twins = _head("relu 0x0p+0 0x1p+0 0:0x1p+0", "relu 0x0p+0 0x1p+0 0:0x1p+0")  # x + 1 >= 0
    proof = [
        "fix 1 0 1:1 0:-1",
        "fix 0 -1 0:1 1:-3",
        "fix 0 0 0:1 1:-1",
        "point -1:1 -2:0",
        "fix 1 1 1:1 0:1",
        "point -1:1 -2:0 0:0",
    ]
    assert "a line is cut off or wrong (KeyError('-1')) (step 4)" in _said(tmp_path, [*twins, "tree", "split 0", *proof])
    assert _said(tmp_path, [*twins, "tree 0:-1", *proof]).startswith("refused: ")


def test_another_network_of_the_same_shape_is_not_proved(tmp_path, honest):
    _, regions, lines = honest
    for seed in (2, 3, 4):
        other = tmp_path / "other.txt"
        tessella.certify(_network(seed), (-1, 1), other)
        theirs = other.read_text().splitlines()[:-1]
        said = _said(tmp_path, [*theirs[: _of(theirs, "tree")[0]], *_body(lines)])
        assert said.startswith("refused: ") or f" {regions} regions" not in said or _network(seed).fingerprint in said
        assert said.startswith("refused: "), seed


def test_leaves_and_branches_are_counted_once_each(tmp_path, honest):
    _, regions, lines = honest
    points, splits, fixed = _of(lines, "point"), _of(lines, "split"), _of(lines, "fix")
    assert _said(tmp_path, lines).startswith(f"verified: 0 bounds, {regions} regions in all")
    forged = {
        "a leaf is missing": [line for number, line in enumerate(lines) if number != points[-1]],
        "a leaf comes twice": [*lines[: points[0]], lines[points[0]], *lines[points[0] :]],
        "a last leaf comes twice": [*lines, lines[points[-1]]],
        "a split is missing": [line for number, line in enumerate(lines) if number != splits[1]],
        "a split comes twice": [*lines[: splits[0]], lines[splits[0]], *lines[splits[0] :]],
        "a unit is not fixed": [line for number, line in enumerate(lines) if number != fixed[0]],
        "the tree comes twice": [*lines, *_body(lines)],
        "a part of the same tree": [*lines, "tree 0:1", *_body(lines)[1:]],
        "a branch is given": [
            *lines[: _of(lines, "tree")[0]],
            f"tree {splits and lines[splits[0]].split()[1]}:1",
            *_body(lines)[1:],
        ],
        "another point": [*lines[: points[0]], lines[points[1]], *lines[points[0] + 1 :]],
    }
    for what, changed in forged.items():
        assert _said(tmp_path, changed).startswith("refused: "), what


def test_parts_that_overlap_are_refused(tmp_path):
    network, path = _network(1), tmp_path / "parts.txt"
    first, second = (bool(side) for side in network.patterns(np.zeros((1, 2)))[0][:2])

    def lines(given):
        tessella.certify(network, (-1, 1), path, given=given)
        return path.read_text().splitlines()[:-1]

    one = lines({0: first})
    for other in ({0: first, 1: second}, {0: first}, {1: second}, {}):
        assert _said(tmp_path, [*one, *_body(lines(other))]).startswith("refused: parts overlap")
        with pytest.raises(tessella.OptionError, match="parts 0 and 1 may have regions in common"):
            tessella.certify(network, (-1, 1), path, given=[{0: first}, other])
    assert _said(tmp_path, [*one, *_body(lines({0: not first}))]).startswith("verified: ")


def test_another_domain_or_depth_is_not_proved(tmp_path, honest):
    _, _, lines = honest
    ends, layers = _of(lines, "input"), _of(lines, "layer")
    for first in ("-0x1p-4 0x1p-4", "0x1p+0 -0x1p+0", "-0x1p+9 0x1p+9", "-inf inf", "nan nan"):
        changed = list(lines)
        changed[ends[0]] = f"input {first}"
        assert _said(tmp_path, changed).startswith("refused: "), first
    for head in (
        "box 2 1",
        "box 2 3",
        "box 1 2",
        "box 3 2",
        "box 0 2",
        "box -1 2",
        "box 2 0",
        "box 99999999999 2",
        "box 2 99999999999",
        "box x 2",
    ):
        assert _said(tmp_path, [lines[0], head, *lines[2:]]).startswith("refused: "), head
    for size in ("layer 0", "layer 3", "layer 1", "layer 99999999999", "layer", "layer -1"):
        changed = list(lines)
        changed[layers[1]] = size
        assert _said(tmp_path, changed).startswith("refused: "), size


def test_inequalities_stand_behind_the_first_units(tmp_path):
    unit, wall = "relu 0x0p+0 0x0p+0 0:0x1p+0", "wall 0x0p+0 0x0p+0 0:0x1p+0"
    proof = ["tree", "fix 0 1 0:1 1:1", "point -1:2 -2:0 0:1"]
    assert _said(tmp_path, [*_head(unit, wall), *proof]).startswith("verified: 0 bounds, 1 regions in all")
    swapped = ["tree", "fix 1 1 1:1 0:1", "point -1:2 -2:0 0:1"]
    assert _said(tmp_path, [*_head(wall, unit), *swapped]).startswith("refused: ")


@pytest.mark.parametrize(
    "number", ["1p999999999", "0x1p999999999", "0x1p-999999999", "inf", "-inf", "nan", "", "0x", "ten", "f" * 100_000, "0x1p0x1"]
)
def test_numbers_that_are_none_end_at_once(tmp_path, number):
    for unit in (f"relu 0x0p+0 {number} 0:0x1p+0", f"relu 0x0p+0 0x0p+0 0:{number}", f"relu {number} 0x0p+0 0:0x1p+0"):
        said = _said(tmp_path, [*_head(unit), "tree", "split 0", "point -1:2 -2:0 0:-1", "point -1:2 -2:0 0:1"])
        assert said.startswith("refused: ") or number == "0x1p-999999999"  # which is 0
        assert len(said) < 300
    for line in (f"fix 0 0 0:{number}", f"point -1:{number} -2:0", f"point -1:1 -2:{number}", f"fix {number} 0 0:1"):
        assert _said(tmp_path, [*_head("relu 0x0p+0 0x0p+0 0:0x1p+0"), "tree", line]).startswith("refused: ")


def test_files_that_blow_up_end_soon(tmp_path):
    wide = b"tessella certificate 1\nbox 20000 1\n" + b"input 0x0p+0 0x1p+0\n" * 20_000
    contents = {
        "nothing but lines": b"\n" * 3_000_000,
        "one line": b"tessella certificate 1" * 1_000_000,
        "weights that are not there": wide + b"layer 13000\n" + b"relu 0x0p+0 0x0p+0\n" * 13_000,
        "many layers": b"tessella certificate 1\nbox 1 9999\ninput 0x0p+0 0x1p+0\n"
        + b"layer 1\nrelu 0x0p+0 0x1p-1000 0:0x1p+1000\n" * 9999,
    }
    for what, content in contents.items():
        path = tmp_path / "bomb.gz"
        path.write_bytes(gzip.compress(content, 9))
        assert verify.check(str(path)).startswith("refused: "), what


def test_files_that_cannot_be_read_are_refused_in_a_line(tmp_path, honest):
    _, _, lines = honest
    whole = _sealed(lines)
    packed = gzip.compress(whole.encode())
    files = {
        "cut.txt": whole[: len(whole) // 2],
        "cut at a line.txt": "".join(f"{line}\n" for line in lines),
        "no line.txt": "",
        "more.txt": whole + "more\n",
        "twice.txt": whole + whole,
        "tab.txt": whole.replace("sum ", "sum\t").replace("point", "point ", 1),
        "cut.gz": packed[: len(packed) // 2],
        "no line.gz": b"",
        "not packed.gz": whole,
        "packed.txt": packed,
        "odd.txt": whole.replace("tree", "tr\u00e4\u00f6e"),
    }
    for name, content in files.items():
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        said = verify.check(str(path))
        assert said.startswith("refused: "), name
        assert said.isascii(), name
        assert "\n" not in said, name
    (tmp_path / "folder.gz").mkdir()
    (tmp_path / "link.txt").symlink_to(tmp_path / "nowhere")
    (tmp_path / "self.txt").symlink_to(tmp_path / "self.txt")
    for name in ("folder.gz", "link.txt", "self.txt", "none.txt"):
        assert verify.check(str(tmp_path / name)).startswith("refused: "), name
        with pytest.raises(tessella.FileMissing, match="no file" if name == "folder.gz" else "no such file"):
            tessella.verify(tmp_path / name)


def test_what_is_typed_behind_the_checker_is_read_or_explained(tmp_path, honest):
    path = tmp_path / "count.txt"
    path.write_text(_sealed(honest[2]))
    for count, code in (("2", 0), ("0", 1), ("-1", 1), ("x", 1), ("1e9", 1), ("99999999", 1)):
        done = subprocess.run([sys.executable, "-I", CHECKER, path, count], capture_output=True, text=True, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), count
        assert done.stdout.startswith("verified: ") if code == 0 else done.stderr.startswith("Check a certificate"), count


def test_certificates_of_other_networks_and_domains_are_told_apart(tmp_path, honest):
    network, regions, lines = honest
    path = tmp_path / "count.txt.gz"
    path.write_bytes(gzip.compress(_sealed(lines).encode()))
    right = tessella.verify(path, network, (-1, 1))
    assert (right.accepted, right.regions, right.domain) == (True, regions, "[-1.0, 1.0]^2")
    assert tessella.verify(path, network).accepted
    for other, domain, why in (
        (_network(2), None, "of another network: its fingerprint is"),
        (tessella.Network(tuple(network.layers[:1])), (-1, 1), "of another network"),
        (network, (0, 1), "on another domain: input 0 is in [-1.0, 1.0] there, and in [0.0, 1.0] here"),
        (network, tessella.Box([-1, -1], [1, 0.5]), "input 1 is in"),
        (
            network,
            tessella.Polytope([[1.0, 1.0]], [1.0], tessella.Box(-1, 1, dim=2)),
            "inequalities are not the same (0 there, 1 here)",
        ),
    ):
        found = tessella.verify(path, other, domain)
        assert not found.accepted
        assert found.said.startswith("refused: it is true, but ")
        assert why in found.said
    with pytest.raises(tessella.OptionError, match="no network"):
        tessella.verify(path, domain=(0, 1))


def test_a_missing_relu_on_the_outputs_is_named(tmp_path):
    rng = np.random.default_rng(3)
    layers = [(rng.normal(size=(3, 2)), None), (rng.normal(size=(1, 3)), None)]
    written = tessella.certify(tessella.load(layers, relu_output=True), (-1, 1), tmp_path / "count.txt")
    assert (
        "with a ReLU on each output, --relu-output in a shell, this one would be it" in tessella.verify(written.path, layers).said
    )


def test_inequalities_of_a_domain_are_compared(tmp_path):
    network, box = _network(6), tessella.Box(-1, 1, dim=2)
    domain = tessella.Polytope([[1.0, 0.5], [-1.0, 1.0]], [0.5, 0.75], box)
    written = tessella.certify(network, domain, tmp_path / "count.txt")
    found = tessella.verify(written.path, network, domain)
    assert found.accepted
    assert len(found.domain) == 64
    lines = [
        line for line in (tmp_path / "count.txt").read_text().splitlines(keepends=True) if line.startswith(("input", "wall"))
    ]
    assert found.domain == hashlib.sha256("".join(lines).encode()).hexdigest()
    moved = tessella.Polytope([[1.0, 0.5], [-1.0, 1.0]], [0.5, 0.5], box)
    assert "inequalities are not the same (2 there, 2 here)" in tessella.verify(written.path, network, moved).said
