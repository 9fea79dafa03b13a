"""Certificates: what they prove is true, and whatever was changed in one is refused, or proves something that is true, too."""

import ast
import gzip
import hashlib
import random
import subprocess
import sys
import tracemalloc
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import tessella
from fuzz.drawing import draw
from helpers.brute_force import count_regions
from helpers.brute_force_ranges import unit_ranges
from helpers.damage import damage
from helpers.odd_networks import leaky_case, random_case
from tessella.certificates import certify, verify
from tessella.certificates.verification import CHECKER

SHAPE = (3, 4, 3, 2)


def _case(seed, **options):
    return (leaky_case if seed % 3 == 0 else random_case)(seed, **options)


def _network(seed, shape=SHAPE):
    rng = np.random.default_rng(seed)
    layers = [(rng.normal(size=(after, before)), rng.normal(size=after)) for before, after in pairwise(shape)]
    return tessella.Network.from_arrays(layers, relu_output=True)


def _resealed(lines):
    """Lines with a checksum that is right."""
    *rest, last = lines
    data = "".join(f"{line}\n" for line in rest)
    *claimed, _ = last.split()
    return data + " ".join([*claimed, hashlib.sha256(data.encode()).hexdigest()]) + "\n"


@pytest.fixture(scope="module")
def count(tmp_path_factory):
    """A network, its box, and the lines of a certificate of its count."""
    path, network = tmp_path_factory.mktemp("count") / "count.txt", _network(1)
    written = tessella.certify(network, (-1, 1), path)
    return network, written.regions, path.read_text().splitlines()


@pytest.mark.parametrize("seed", range(40))
def test_counts_and_bounds_of_odd_networks_are_proved_and_true(tmp_path, seed):
    case = _case(seed, largest=40, most_inputs=4)
    path = str(tmp_path / "certificate.txt")
    truth = count_regions(*case)
    assert tessella.certify(case.network, case.domain, path).regions == truth
    assert verify.check(path).startswith(
        f"verified: 0 bounds, {truth} regions in all; network {case.network.fingerprint}, domain "
    )
    known = tessella.stability(case.network, case.domain, method=("linear", "lp", "milp")[seed % 3])
    written = tessella.certify(case.network, case.domain, path, claim="stability", stability=known)
    units = sum(layer.units for layer in case.network.layers)
    said = f"verified: {2 * units} bounds, 0 regions in 0 parts; network {case.network.fingerprint}, domain "
    assert verify.check(path).startswith(said)
    ranges = [ends for layer in unit_ranges(*case) for ends in layer]
    ends = dict.fromkeys(((unit, side) for unit in range(units) for side in (0, 1)), 0.0)
    walls = 0 if case.offset is None else len(case.offset)
    first = case.network.layers[0].units
    for line in Path(path).read_text().splitlines():
        if line.startswith("bound"):
            _, unit, side, value = line.split()
            ends[int(unit) - (walls if int(unit) >= first else 0), int(side)] = Fraction(float.fromhex(value))
    assert all(ends[unit, 0] <= low and high <= ends[unit, 1] for unit, (low, high) in enumerate(ranges))
    stable = zip(np.concatenate(known.inactive), np.concatenate(known.active), strict=True)
    proved = [(not down or ends[unit, 1] <= 0) and (not up or ends[unit, 0] >= 0) for unit, (down, up) in enumerate(stable)]
    assert proved.count(False) == written.unproved


def test_degenerate_networks_are_certified(tmp_path):
    whole = [([[1, 0], [0, 1], [1, 1], [1, -1], [2, 2]], None), ([[1, 1, -1, 0, 0], [1, -1, 0, 1, -1], [1, 1, 1, 1, -2]], None)]
    network = tessella.Network.from_arrays([(np.array(w, float), b) for w, b in whole], relu_output=True)
    case = [(layer.weight, layer.bias, layer.rectified) for layer in network.layers]
    path = str(tmp_path / "certificate.txt")
    for low, high in ((-1.0, 1.0), (0.0, 1.0)):
        truth = count_regions(case, np.full(2, low), np.full(2, high))
        assert tessella.certify(network, (low, high), path).regions == truth
        assert verify.check(path).startswith(f"verified: 0 bounds, {truth} regions in all")


def test_the_checker_is_one_short_file_that_needs_the_standard_library_alone(tmp_path, count):
    network, regions, lines = count
    text = CHECKER.read_text()
    assert len(text.splitlines()) <= 200
    named = {
        alias.name.split(".")[0] for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for alias in node.names
    }
    named |= {str(node.module).split(".")[0] for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
    assert named <= sys.stdlib_module_names
    copy, path = tmp_path / "verify.py", tmp_path / "count.txt.gz"
    copy.write_text(text)
    path.write_bytes(gzip.compress(_resealed(lines).encode()))
    for processes in ([], ["3"]):
        done = subprocess.run([sys.executable, "-I", "-S", copy, path, *processes], capture_output=True, text=True, check=False)
        assert (
            done.stdout == f"verified: 0 bounds, {regions} regions in all; network {network.fingerprint}, domain [-1.0, 1.0]^3\n"
        )
        assert (done.returncode, done.stderr) == (0, "")
    asked = subprocess.run([sys.executable, "-I", copy], capture_output=True, text=True, check=False)
    assert (asked.returncode, asked.stderr.splitlines()[0][:20]) == (1, "Check a certificate:")
    missing = subprocess.run([sys.executable, "-I", copy, tmp_path / "none"], capture_output=True, text=True, check=False)
    assert (missing.returncode, missing.stdout.startswith("refused: "), missing.stderr) == (1, True, "")


def test_changed_numbers_are_refused(tmp_path, count):
    _, _, lines = count
    text, rng, path = "\n".join(lines) + "\n", random.Random(0), tmp_path / "damaged.txt"
    places = [place for place, letter in enumerate(text) if letter in "0123456789abcdef"]
    for place in rng.sample(places, 100):
        other = rng.choice([letter for letter in "0123456789abcdef" if letter != text[place]])
        path.write_text(text[:place] + other + text[place + 1 :])
        assert verify.check(str(path)).startswith("refused: ")


def test_damaged_and_foreign_files_are_refused_in_a_line(tmp_path, count):
    _, _, lines = count
    text, rng, path = ("\n".join(lines) + "\n").encode(), random.Random(1), tmp_path / "damaged.txt"
    for number in range(150):
        packed = number % 3 == 0
        data = damage(gzip.compress(text, mtime=0) if packed else text, rng)
        place = path.with_suffix(".gz") if packed else path
        place.write_bytes(data)
        said = verify.check(str(place))
        whole = data == text or (packed and said.startswith("verified") and gzip.decompress(data) == text)
        assert whole or said.startswith("refused: ")
        assert "\n" not in said
    for foreign in (b"", b"\n", b"\0" * 1000, b"x" * 100_000, b"sum 0 0 0 0\n", Path(__file__).read_bytes()):
        path.write_bytes(foreign)
        assert verify.check(str(path)).startswith("refused: ")


@pytest.mark.parametrize("seed", range(3))
def test_what_was_changed_and_sealed_anew_proves_nothing_false(tmp_path, count, seed):
    _, regions, lines = count
    first = next(number for number, line in enumerate(lines) if line.startswith("tree"))
    rng, path, kept = random.Random(seed), tmp_path / "changed.txt", 0
    for _ in range(150):
        changed = list(lines)
        place = rng.randrange(first, len(lines))
        words = changed[place].split()
        kind = rng.randrange(5)
        if kind == 0 and len(words) > 1:  # a number
            which = rng.randrange(1, len(words))
            digits = [at for at, letter in enumerate(words[which]) if letter in "0123456789abcdef"]
            at = rng.choice(digits)
            words[which] = words[which][:at] + rng.choice("0123456789abcdef") + words[which][at + 1 :]
            changed[place] = " ".join(words)
        elif kind == 1:
            del changed[place]
        elif kind == 2:
            changed.insert(place, changed[rng.randrange(first, len(lines))])
        elif kind == 3:
            other = rng.randrange(first, len(lines))
            changed[place], changed[other] = changed[other], changed[place]
        else:
            changed[place] = " ".join(words[: rng.randrange(1, len(words) + 1)])
        claims = changed[-1].split()
        if len(claims) == 5 and rng.random() < 0.5:  # what would be counted is claimed
            changed[-1] = f"sum 0 1 {sum(line.startswith('point') for line in changed)} x"
        path.write_text(_resealed(changed))
        said = verify.check(str(path))
        kept += said.startswith("verified")
        assert said.startswith(("refused: ", f"verified: 0 bounds, {regions} regions in all"))
    assert kept < 60


def _tiny(*proof, network=(([[1.0]], [0.0]),), walls=()):
    """A certificate of a network with one input, in the words of whoever wants to cheat."""
    lines = ["tessella certificate 1", f"box 1 {len(network)}", "input -0x1p+0 0x1p+0"]
    for number, (weight, bias) in enumerate(network):
        lines.append(f"layer {len(weight) + (len(walls) if number == 0 else 0)}")
        for row, own in zip(weight, bias, strict=True):
            lines.append(" ".join(["relu 0x0p+0", own.hex(), *(f"{place}:{one.hex()}" for place, one in enumerate(row))]))
        lines += [f"wall 0x0p+0 {offset.hex()} 0:{slope.hex()}" for slope, offset in walls] if number == 0 else []
    counts = [sum(line.startswith(kind) for line in proof) for kind in ("bound", "tree", "point")]
    return _resealed([*lines, *proof, f"sum {' '.join(map(str, counts))} x"])


HALF = ((1.0, 0.0),)  # x >= 0
GOOD = ("tree", "split 0", "point -1:2 -2:0 0:-1", "point -1:2 -2:0 0:1")
LIES = {
    "a point on the border of a split": ("tree", "split 0", "point -1:2 -2:0 0:-1", "point -1:2 -2:0 0:0"),
    "a point outside the box": ("tree", "split 0", "point -1:2 -2:0 0:-3", "point -1:2 -2:0 0:1"),
    "a scale that is negative": ("tree", "split 0", "point -1:-2 -2:0 0:-1", "point -1:2 -2:0 0:1"),
    "a scale of zero": ("tree", "split 0", "point -1:0 -2:0 0:-1", "point -1:2 -2:0 0:1"),
    "two trees": (*GOOD, *GOOD),
    "a unit fixed without a proof": ("tree", "fix 0 0 0:1", "point -1:2 -2:0 0:-1"),
    "a proof turned round by a negative scale": ("tree", "fix 0 0 0:-1", "point -1:2 -2:0 0:-1"),
    "a unit that is not there": ("tree", "fix 1 0 1:1", "point -1:2 -2:0 0:-1"),
    "a unit counted from behind": ("tree", "fix -1 0 -1:1", "point -1:2 -2:0 0:-1"),
    "a unit decided twice": ("tree", "split 0", "split 0", "point -1:2 -2:0 0:-1", "point -1:2 -2:0 0:-1", "point -1:2 -2:0 0:1"),
    "a point before all is decided": ("tree", "point -1:2 -2:0 0:-1"),
    "a branch of a count that ends like a bound": ("tree", "split 0", "point -1:2 -2:0 0:-1", "end 0:1"),
    "a bound that is too small": ("bound 0 1 0x1p-1", "end 0:1", *GOOD),
    "a bound of another side": ("bound 0 5 0x1p-1", "end 0:1", *GOOD),
    "a tree without an end": ("tree", "split 0", "point -1:2 -2:0 0:-1"),
}


def test_lies_are_refused(tmp_path):
    path = tmp_path / "lie.txt"
    path.write_text(_tiny(*GOOD))
    assert verify.check(str(path)).startswith("verified: 0 bounds, 2 regions in all")
    for what, proof in LIES.items():
        path.write_text(_tiny(*proof))
        assert verify.check(str(path)).startswith("refused: "), what


def test_the_inequalities_of_the_domain_cannot_be_argued_away(tmp_path):
    path = tmp_path / "lie.txt"
    inside = ("tree", "fix 0 1 0:1 1:1", "point -1:2 -2:0 0:1")
    path.write_text(_tiny(*inside, walls=HALF))
    assert verify.check(str(path)).startswith("verified: 0 bounds, 1 regions in all")
    argued = ("bound 1 1 0x1p+3", "end 1:1", *GOOD)  # would leave them undecided, and points outside allowed
    for proof in (GOOD, argued, ("tree", "fix 0 1 0:1 1:-1", "point -1:2 -2:0 0:1"), ("tree", "split 1", *GOOD[1:], *GOOD[1:])):
        path.write_text(_tiny(*proof, walls=HALF))
        assert verify.check(str(path)).startswith("refused: ")
    later = _tiny(*GOOD, network=(([[1.0]], [0.0]), ([[1.0]], [0.0])))
    path.write_text(
        _resealed(
            later.replace(
                "layer 1\nrelu 0x0p+0 0x0.0p+0 0:0x1.0000000000000p+0\ntree", "layer 1\nwall 0x0p+0 0x0p+0\ntree"
            ).splitlines()
        )
    )
    assert verify.check(str(path)).startswith("refused: ")


def test_numbers_of_any_length_end_soon(tmp_path):
    path = tmp_path / "long.txt"
    for number in ("f" * 1_000_000, "-" + "9" * 200_000):
        path.write_text(_tiny("tree", "split 0", f"point -1:{number} -2:0 0:-1", "point -1:2 -2:0 0:1"))
        assert verify.check(str(path)).startswith("refused: a number is too long")


def test_parts_of_the_domain_add_up(tmp_path, count):
    network, regions, _ = count
    written = [tessella.certify(network, (-1, 1), tmp_path / f"{side}.txt", given={0: side}) for side in (False, True)]
    assert sum(one.regions for one in written) == regions
    together = tessella.certify(
        network, (-1, 1), tmp_path / "both.txt", given=[{0: False}, {0: True, 1: False}, {0: True, 1: True}]
    )
    checked = tessella.verify(together.path)
    assert (checked.accepted, checked.regions, together.regions, checked.parts) == (True, regions, regions, 3)
    checked = tessella.verify(written[0].path)
    assert (checked.accepted, checked.regions, checked.parts) == (True, written[0].regions, 1)
    assert checked.fingerprint == network.fingerprint


def test_what_is_not_finished_leaves_no_file(tmp_path, monkeypatch):
    network, path = _network(2, (6, 10, 10)), tmp_path / "count.txt"
    stopped = tessella.certify(network, (-1, 1), path, seconds=1e-6)
    assert (stopped.is_whole, str(stopped.status), stopped.bytes, path.exists()) == (False, "time limit", 0, False)

    def press(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(certify, "_trees", press)
    stopped = tessella.certify(network, (-1, 1), path)
    assert (str(stopped.status), path.exists()) == ("interrupted", False)
    assert list(tmp_path.iterdir()) == []


def test_results_are_shown_and_read_back(tmp_path, count):
    network, _, _ = count
    written = tessella.certify(network, (-1, 1), tmp_path / "count.txt.gz")
    again = tessella.Certificate.from_json(written.to_json(), network=network)
    assert (again.to_json(), repr(again), again.rows()) == (written.to_json(), repr(written), written.rows())
    checked = tessella.verify(written.path, workers=2)
    assert tessella.Verdict.from_json(checked.to_json()) == checked
    assert "verified" in checked._repr_html_()
    assert "regions" in written._repr_html_()


def test_what_cannot_be_certified_is_refused(tmp_path):
    network, path = _network(3), tmp_path / "count.txt"
    with pytest.raises(tessella.DomainError, match="needs a bounded domain"):
        tessella.certify(network, (-np.inf, np.inf), path)
    with pytest.raises(tessella.OptionError, match="claim is 'all'"):
        tessella.certify(network, (-1, 1), path, claim="all")
    for given, words in (
        ({99: True}, "given has 99"),
        ([{"0": True}], "given has '0'"),
        ([0, 1], "given has 0"),
        ([], "no parts"),
    ):
        with pytest.raises(tessella.OptionError, match=words):
            tessella.certify(network, (-1, 1), path, given=given)
    with pytest.raises(tessella.OptionError, match="is no path"):
        tessella.verify(3)
    with pytest.raises(tessella.FileMissing, match="there is no such file"):
        tessella.verify(path)
    with pytest.raises(tessella.OptionError, match="workers is 0"):
        tessella.verify(__file__, workers=0)


def test_networks_without_relus_and_all_stable_ones(tmp_path):
    path = tmp_path / "count.txt"
    for layers, regions in (([([[1.0]], [0.0])], 1), ([([[1.0]], [5.0]), ([[1.0]], [0.0])], 1)):
        for claim in ("count", "stability"):
            written = tessella.certify(layers, (-1, 1), path, claim=claim)
            checked = tessella.verify(path)
            assert (checked.accepted, checked.regions) == (True, regions if claim == "count" else 0)
            assert written.unproved == 0


def test_memory_does_not_grow_with_the_number_of_regions(tmp_path):
    def peaks(width):
        network, path = _network(4, (5, width, 5)), str(tmp_path / "count.txt.gz")
        tracemalloc.start()
        regions = tessella.certify(network, (-1, 1), path).regions
        written = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        assert verify.check(path).startswith("verified")
        checked = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return regions, written, checked

    tessella.certify(_network(4, (5, 2, 5)), (-1, 1), str(tmp_path / "before.txt.gz"))  # what is loaded once
    (few, *small), (many, *large) = peaks(4), peaks(9)
    assert many > 10 * few
    assert all(after < before + 1_000_000 for before, after in zip(small, large, strict=True))


@pytest.mark.parametrize("seed", [25, 29, 41, 65, 87, 122, 164])  # rows that overflow or underflow, and bounds with few digits
def test_badly_scaled_networks_are_certified(tmp_path, seed):
    case, path = draw(seed).case, str(tmp_path / "certificate.txt")
    regions = tessella.certify(case.network, case.domain, path).regions
    assert regions == count_regions(*case)
    assert verify.check(path).startswith(f"verified: 0 bounds, {regions} regions in all")
    tessella.certify(case.network, case.domain, path, claim="stability")
    assert verify.check(path).startswith("verified: ")


def test_the_checker_runs_where_it_lies(tmp_path):
    """A script's own folder is the first in which Python looks for modules; none there may hide one of the standard library."""
    path = tmp_path / "count.txt"
    tessella.certify(_network(3), (-1, 1), path)
    done = subprocess.run([sys.executable, "-S", str(CHECKER), str(path)], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("verified"), done.stderr
    assert not {file.stem for file in CHECKER.parent.glob("*.py")} & sys.stdlib_module_names
