"""What a careful user writes: every public name, with types. mypy --strict reads it, and it runs."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pyscipopt import Model

import tessella
from tessella import formulation, plot, report, solvers

PROPERTY = (
    "(declare-const X_0 Real)\n(declare-const Y_0 Real)\n(assert (>= X_0 -0.5))\n(assert (<= X_0 0.5))\n(assert (>= Y_0 1.0))\n"
)


def read(folder: Path) -> tuple[tessella.Network, tessella.Domain]:
    """Networks and domains."""
    rng = np.random.default_rng(0)
    layers: tessella.NetworkLike = [(rng.normal(size=(5, 2)), rng.normal(size=5)), (rng.normal(size=(1, 5)), [0.0])]
    network = tessella.load(layers)
    source: tessella.Source | None = network.source
    layer: tessella.Layer = network.layers[0]
    assert source is None
    assert layer.units == 5
    (folder / "p.vnnlib").write_text(PROPERTY)
    domains: tuple[tessella.Domain, ...] = tessella.load_domains(folder / "p.vnnlib")
    assert tessella.load_domain(folder / "p.vnnlib").dim == len(domains)
    interval: tessella.DomainLike = (-1, 1)
    assert tessella.count(network, interval).exact
    triangle = tessella.Polytope([[1.0, 1.0]], [1.0], tessella.Box(-1, 1, dim=2), tessella.Tolerances())
    return network, triangle


def count(network: tessella.Network, domain: tessella.Domain) -> int:
    """Counting and listing."""

    def show(seen: tessella.CountProgress) -> None:
        assert seen.lower >= 1

    found: tessella.Count = tessella.count(network, domain, seconds=60.0, progress=show)
    listed: Iterator[tessella.Region] = tessella.regions(network, domain)
    first, *others = listed
    assert found.exact == 1 + len(others)
    smaller: tessella.Compression = tessella.compress(network, domain)
    assert smaller.network.relus <= network.relus
    around: tessella.Neighbours = first.neighbours()
    assert around.complete
    written: tessella.Certificate = tessella.certify(network, domain, "user.cert.gz")
    checked: tessella.Verdict = tessella.verify(written.path)
    assert checked.accepted
    together: tessella.Graph = tessella.graph(network, domain)
    assert together.regions == found.exact
    summary: tessella.Summary = tessella.summarise(network, domain, [tessella.Statistic.ACTIVE, "volume"])
    active: tessella.Distribution = summary.distribution("active")
    assert active.mean.value <= network.relus
    return found.exact or 0


def estimate(network: tessella.Network, domain: tessella.Domain) -> int:
    """What holds with a confidence."""

    def show(seen: tessella.EstimateProgress) -> None:
        assert seen.probes >= 0

    found: tessella.Estimate = tessella.estimate(network, domain, probes=20, progress=show)
    drawn: tuple[tessella.SampledRegion, ...] | list[tessella.SampledRegion] = tessella.sample_regions(network, domain, 5)
    weight: float = sum(one.weight for one in drawn)
    bound: tessella.MIPBound = tessella.mipbound(network, domain, parity_size=3)
    knapsack = Model("knapsack")
    items = [knapsack.addVar(f"i{number}", "B") for number in range(6)]
    knapsack.addCons(sum(items) <= 3)
    of_model: tessella.MIPBound = tessella.mipbound_model(knapsack, solver=tessella.SCIP())
    others: tuple[type[solvers.Solver], ...] = (tessella.HiGHS, tessella.Gurobi)
    assert weight > 0.0
    assert len(others) == 2
    return max(found.lower, bound.lower, of_model.lower)


def bound(network: tessella.Network, domain: tessella.Domain, folder: Path) -> list[tessella.Bound]:
    """What is proved from above."""
    known: tessella.Stability = tessella.stability(network, domain, progress=True)
    again: tessella.Stability = tessella.Stability.from_json(known.to_json(), network=network)
    assert again.rows() == known.rows()
    ranges: tessella.PreactivationBounds = known.bounds
    every: tessella.UpperBounds = tessella.upper_bounds(network, domain, stability=known)
    values: list[int] = [tessella.raghu_bound(network), tessella.montufar_bound(network), tessella.configuration_bound(2, [5])]
    values.append(tessella.empirical_bound(network, domain))
    assert all(claim.side is tessella.Side.UPPER and claim.counted is tessella.Counted.REGIONS for claim in every.bounds)
    written: formulation.Formulation = formulation.formulate(network, domain, ranges)
    model: formulation.Model = written.model
    formulation.write_model(model, folder / "net.mps.gz")
    formulation.write_mps(model, folder / "net.mps")
    formulation.write_lp(model, folder / "net.lp")
    solver: solvers.Solver = solvers.SCIP(threads=1)
    solved: solvers.Solution = solver.solve(model)
    assert solved.status is solvers.SolverStatus.OPTIMAL is solvers.Status.OPTIMAL
    peers: list[solvers.Solver] = [solvers.HiGHS(), solvers.Gurobi()]
    assert len(peers) == 2
    return [tessella.Bound(value, tessella.Side.UPPER) for value in values]


def show(network: tessella.Network, domain: tessella.Domain, folder: Path) -> None:
    """Analyses, pictures, training."""
    found: tessella.Analysis = tessella.analyze(network, domain, seconds=5.0)
    ranking: tessella.Ranking = tessella.rank({"one": found, "other": found})
    assert ranking.names
    line: tessella.Slice = tessella.slice(network, [[-1.0, -1.0], [1.0, 0.0]], domain)
    polygons: tessella.Polygons = tessella.polygons(line.network, line.domain)
    assert len(polygons) >= 1
    plot.regions(network, domain, colour=plot.Colour.LAYER).savefig(folder / "regions.svg")
    plot.bracket([found], names=["one"]).savefig(folder / "bracket.svg")
    plot.stability(found).savefig(folder / "stability.svg")
    plot.histogram(tessella.summarise(network, domain, "active"), "active").savefig(folder / "active.svg")
    plot.animation([network, network], domain, folder / "twice.gif")
    solid = tessella.Network.from_arrays([([[1.0, 0.0, 0.5]], [0.0])], relu_output=True)
    plot.space(solid, (-1, 1)).write_html(folder / "solids.html")
    balls: tessella.Local = tessella.local(network, [[-0.5, 0.5]], 0.25, domain=(-1, 1), progress=True)
    assert balls.lower
    path: tessella.Along = tessella.along(network, [[-1.0, -1.0], [1.0, 0.0]], progress=True)
    plot.along(path, names=["one", "other"]).savefig(folder / "path.svg")
    shown: report.Explorer = report.explore(network, domain, progress=True)
    past: report.Provenance = report.Provenance.of(folder / "regions.svg", ["a", "command"])
    report.write(folder / "report.html", found, shown=shown, provenance=past)
    assert "<html" in report.page(ranking)
    tracker: tessella.Tracker = tessella.track(network, domain, probes=20)
    assert tracker.step()


def fail() -> list[str]:
    """Errors."""
    kinds: list[type[tessella.TessellaError]] = [
        tessella.ConversionMismatch,
        tessella.DomainError,
        tessella.FileError,
        tessella.FileMissing,
        tessella.MissingPackage,
        tessella.NetworkError,
        tessella.OptionError,
        tessella.SolverError,
        tessella.UnknownShape,
        tessella.UnsupportedModel,
        tessella.UnsupportedOperator,
        tessella.WorkerLost,
    ]
    return [f"{kind.__name__} of {tessella.__version__}" for kind in kinds]


def main(folder: Path) -> None:
    """All of it."""
    network, domain = read(folder)
    exact = count(network, domain)
    assert estimate(network, domain) >= 1
    assert all(claim.value >= exact for claim in bound(network, domain, folder))
    show(network, domain, folder)
    assert len(fail()) == 12


if __name__ == "__main__":
    main(Path.cwd())
