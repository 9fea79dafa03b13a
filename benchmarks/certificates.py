"""Certificates: 1,000 random networks verified, 1,000 damaged certificates refused, and what a region costs to prove and to check.

    PYTHONPATH=src:tests python benchmarks/certificates.py random            # --cases 1000
    PYTHONPATH=src:tests python benchmarks/certificates.py damaged           # --cases 1000
    PYTHONPATH=src:tests python benchmarks/certificates.py sizes             # small networks of several shapes
    PYTHONPATH=src:tests python benchmarks/certificates.py files a.npz ...   # --box 0,1 --relu-output --most 100000
    PYTHONPATH=src:tests python benchmarks/certificates.py parts a.npz ...   # --cases 1000 --box 0,1 --relu-output --seed 1

Times are CPU seconds.  ``random`` compares each count with brute force in rational arithmetic, and each bound by the checker alone.  ``damaged`` changes one number of a certificate: as it is, and
with a new checksum; with that, what is still verified must be true.  ``parts`` certifies parts of a count: it draws regions by a seed, and takes for each all regions with the same pattern before the last layer.
"""

import argparse
import hashlib
import random
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

import tessella
from helpers.brute_force import count_regions
from helpers.odd_networks import leaky_case, random_case
from tessella.certificates import verify

_SHAPES = ((2, 16, 16), (4, 10, 10), (6, 10, 10), (8, 10, 8), (20, 8, 6), (5, 8, 8, 8))


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("random", "damaged", "sizes", "files", "parts"))
    parser.add_argument("files", nargs="*")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first case")
    parser.add_argument("--box", default="-1,1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--relu-output", action="store_true")
    parser.add_argument("--most", type=int, default=100_000, help="leave out files with more regions")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "certificate.txt.gz")
        if asked.what == "random":
            print(_random(range(asked.first, asked.first + asked.cases), path))
        elif asked.what == "damaged":
            print(_damaged(range(asked.first, asked.first + asked.cases), path))
        elif asked.what == "parts":
            print(
                "| network | parts | regions in them | writing, ms/region | checking, ms/region |\n|---|---|---|---|---|",
                flush=True,
            )
            for file in asked.files:
                print(_parts(file, asked, path), flush=True)
        else:
            print(
                "| network | regions | writing, ms/region | checking, ms/region | bytes/region, packed |\n|---|---|---|---|---|",
                flush=True,
            )
            nets = _files(asked) if asked.what == "files" else _shapes()
            for name, net, box in nets:
                print(_cost(name, net, box, path), flush=True)


def _random(seeds, path):
    """How many of some random networks have a count and bounds that are verified and right."""
    right = bounds = missing = regions = skipped = 0
    for seed in seeds:
        case = (leaky_case if seed % 3 == 0 else random_case)(seed, largest=60)
        try:
            net, domain = case.network, case.domain
        except tessella.DomainError:  # inequalities that leave no interior
            skipped += 1
            continue
        truth = count_regions(*case)
        written = tessella.certify(net, domain, path)
        right += verify.check(path).startswith(f"verified: 0 bounds, {truth} regions in all") and written.regions == truth
        regions += truth
        proved = tessella.certify(net, domain, path, claim="stability")
        bounds += verify.check(path).startswith(f"verified: {proved.bounds} bounds, 0 regions")
        missing += proved.unproved
    return (
        f"{right} of {len(seeds) - skipped} counts verified and equal to brute force ({regions:,} regions, {skipped} empty domains left out); "
        f"{bounds} stabilities verified, {missing} stable units without a proof"
    )


def _damaged(seeds, path):
    """How many certificates with one number changed are refused, as they are and with a new checksum."""
    plain = path.removesuffix(".gz")
    refused = sealed = true = 0
    for seed in seeds:
        rng = random.Random(seed)
        net = _network(seed, (3, 5, 4))
        regions = tessella.certify(net, (-1, 1), plain).regions
        lines = Path(plain).read_text().splitlines()
        first = next(number for number, line in enumerate(lines) if line.startswith("tree"))
        which = rng.randrange(first + 1, len(lines))
        digits = [
            place
            for place, letter in enumerate(lines[which])
            if letter in "0123456789abcdef" and not lines[which][:place].isalpha()
        ]
        place = rng.choice([place for place in digits if place > lines[which].find(" ")])
        other = rng.choice([letter for letter in "0123456789abcdef" if letter != lines[which][place]])
        lines[which] = lines[which][:place] + other + lines[which][place + 1 :]
        Path(plain).write_text("\n".join(lines) + "\n")
        refused += verify.check(plain).startswith("refused")
        *rest, last = lines
        data = "".join(f"{line}\n" for line in rest)
        Path(plain).write_text(data + " ".join([*last.split()[:-1], hashlib.sha256(data.encode()).hexdigest()]) + "\n")
        said = verify.check(plain)
        sealed += said.startswith("refused")
        true += said.startswith(f"verified: 0 bounds, {regions} regions in all")
    return f"{refused} of {len(seeds)} refused; with a new checksum {sealed} refused, {true} verified and true, {len(seeds) - sealed - true} verified and false"


def _network(seed, shape):
    rng = np.random.default_rng(seed)
    layers = [(rng.standard_normal((m, n)), rng.standard_normal(m)) for n, m in pairwise(shape)]
    return tessella.load(layers, relu_output=True)


def _shapes():
    for shape in _SHAPES:
        yield "-".join(map(str, shape)), _network(0, shape), (-1, 1)


def _files(asked):
    low, high = map(float, asked.box.split(","))
    for file in asked.files:
        net = tessella.load(file, relu_output=asked.relu_output)
        if tessella.count(net, (low, high), seconds=600).upper <= asked.most:
            yield Path(file).stem, net, (low, high)


def _parts(file, asked, path):
    """Certify some parts of a count, chosen by a seed."""
    low, high = map(float, asked.box.split(","))
    net = tessella.load(file, relu_output=asked.relu_output)
    rectified = np.flatnonzero(np.concatenate([layer.rectified for layer in net.layers]))
    before = net.relus - net.layers[-1].relus
    chosen, seed = dict[bytes, dict[int, bool]](), asked.seed
    while len(chosen) < asked.cases and seed < asked.seed + 20:
        for region in tessella.sample_regions(net, (low, high), asked.cases, rng=seed):
            pattern = region.region.pattern[:before]
            given = dict(zip(rectified[:before].tolist(), pattern.tolist(), strict=True))
            if len(chosen) < asked.cases:
                chosen.setdefault(pattern.tobytes(), given)
        seed += 1
    begin = time.process_time()
    written = tessella.certify(net, (low, high), path, given=list(chosen.values()))
    writing = time.process_time() - begin
    begin = time.process_time()
    said = verify.check(path)
    checking = time.process_time() - begin
    if not said.startswith(f"verified: 0 bounds, {written.regions} regions in {len(chosen)} parts"):
        msg = f"{file}: {said}"
        raise SystemExit(msg)
    per = 1e3 / written.regions
    return f"| {Path(file).stem} | {len(chosen):,} | {written.regions:,} | {writing * per:.2f} | {checking * per:.2f} |"


def _cost(name, net, box, path):
    tessella.certify(_network(1, (2, 3, 2)), (-1, 1), path)  # compiles
    begin = time.process_time()
    written = tessella.certify(net, box, path)
    writing = time.process_time() - begin
    begin = time.process_time()
    said = verify.check(path)
    checking = time.process_time() - begin
    expected = tessella.count(net, box).exact
    if not written.is_whole or not said.startswith(f"verified: 0 bounds, {expected} regions in all"):
        msg = f"{name}: {written!r}, {said}, and {expected} were counted"
        raise SystemExit(msg)
    per = 1e3 / written.regions
    return (
        f"| {name} | {written.regions:,} | {writing * per:.2f} | {checking * per:.2f} | {written.bytes / written.regions:.0f} |"
    )


if __name__ == "__main__":
    main()
