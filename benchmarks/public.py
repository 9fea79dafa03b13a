"""What `analyze` says of networks of real size in the time it is given, and how long and how much memory it takes.

    python benchmarks/public.py models/                     # each .onnx or .onnx.gz there, on its properties: x.vnnlib, or x_prop_*.vnnlib
    python benchmarks/public.py models/ --only collins      # those whose name contains this
    python benchmarks/public.py --synthetic                 # networks made here, up to a million units in one layer

Each row is a process of its own.  ``wall`` begins when the model is read; ``over`` is what it is above the seconds asked for, without compiling; ``CPU s`` are those of all processes, loading
compiled code included, and tell more than wall seconds where other work runs beside; memory is that of the process, and of the largest that it started, together.
"""

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

_SUFFIXES = (".gz", ".onnx", ".vnnlib")
_LIMIT = 600  # seconds after which a process is given up


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--choices", action="store_true", help="print what was run, too")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        _analyze(*asked.child, asked.seconds)
        return
    subjects = [(name, "") for name in _SYNTHETIC] if asked.synthetic else list(_pairs(asked.folder))
    print(
        f"{'network':28} {'inputs':>6} {'ReLUs':>9} {'unstable':>8}  {'regions, as log2':40} {'wall s':>7} {'over':>6} {'CPU s':>6} {'GB':>5}"
    )
    for model, prop in subjects:
        name = _stem(Path(prop or model)) if prop and _stem(Path(prop)).startswith(_stem(Path(model))) else _stem(Path(model))
        if asked.only not in model + prop:
            continue
        print(_row(name, _run(model, prop, asked.seconds), choices=asked.choices), flush=True)


def _stem(path: Path) -> str:
    while path.suffix in _SUFFIXES:
        path = path.with_suffix("")
    return path.name


def _pairs(folder: Path):
    """Each model with each of its properties; with none it is read on [0, 1]."""
    files = sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES)
    properties = [path for path in files if ".vnnlib" in path.name]
    for model in files:
        if ".onnx" not in model.name:
            continue
        stem = _stem(model)
        own = [path for path in properties if _stem(path) == stem or _stem(path).startswith(f"{stem}_prop")]
        own = own or [path for path in properties if _stem(path).startswith(stem.split("_")[0] + "_prop")]
        yield from ((str(model), str(path)) for path in own or [""])


def _run(model: str, prop: str, seconds: float) -> dict:
    """What the child says, or why it says nothing."""
    command = [sys.executable, __file__, "--seconds", str(seconds), "--child", model, prop]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent / "src")}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"given up after {_LIMIT} s"}
    lines = done.stdout.strip().splitlines()
    return (
        json.loads(lines[-1]) if done.returncode == 0 and lines else {"error": (done.stderr.strip() or "killed").splitlines()[-1]}
    )


def _row(name: str, said: dict, *, choices: bool) -> str:
    if "error" in said:
        return f"{name:28} {said['error'][:100]}"
    least, probable, most = (_power(said[key]) for key in ("lower", "probable", "upper"))
    about = "-" if said["estimate"] is None else " to ".join(map(_power, said["estimate"]))
    bracket = f"exactly {said['lower']:,}" if said["exact"] else f"{least} | {probable} | {about} | {most}"
    line = f"{name:28} {said['inputs']:6,} {said['relus']:9,} {said['unstable']:8,}  {bracket:40} {said['wall']:7.1f} {said['over']:+6.1f} {said['cpu']:6.1f} {said['memory']:5.1f}"
    if choices:
        line += (
            "".join(f"\n    {step['name']:13} {step['seconds']:6.2f}  {step['found']}" for step in said["steps"])
            + f"\n    {said['choices']}"
        )
    return line


def _power(number: float | None) -> str:
    return "-" if number is None else f"{number:.1f}"


def _analyze(model: str, prop: str, seconds: float) -> None:
    """In the child: analyse one network, and print what came of it."""
    import tessella  # noqa: PLC0415
    from tessella.result import maps  # noqa: PLC0415

    if model in _SYNTHETIC:
        network, domain = _SYNTHETIC[model]()
    else:
        network = tessella.load(model)
        domain = tessella.load_domains(prop)[0] if prop else tessella.Box(0, 1, dim=network.input_dim)
    start, before = time.perf_counter(), _processor_seconds()
    found = tessella.analyze(network, domain, seconds=seconds)
    wall = time.perf_counter() - start
    kilobytes = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    estimate = found.estimate
    known = found.stability
    said = {
        "inputs": domain.free_dim,
        "relus": network.relus,
        "unstable": network.relus if known is None else known.totals()["unstable"],
        "exact": found.exact is not None,
        "lower": found.proved_lower if found.exact is not None and found.exact < 1 << 60 else maps(found.proved_lower),
        "probable": maps(found.probable_lower),
        "estimate": None if estimate is None else estimate.maps_interval,
        "upper": maps(found.upper),
        "wall": wall,
        "over": wall - seconds - found.compile_seconds,
        "cpu": _processor_seconds() - before,
        "memory": kilobytes / 1e6,
        "steps": [{"name": step.name, "seconds": step.seconds, "found": step.found} for step in found.steps],
        "choices": found.choices,
    }
    print(json.dumps(said))


def _processor_seconds() -> float:
    """Those of this process, and of the ones that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _dense(*sizes: int, scale: float = 1.0):
    """Random weights, with biases that leave most units unstable."""
    import numpy as np  # noqa: PLC0415

    import tessella  # noqa: PLC0415

    rng = np.random.default_rng(0)
    layers = [
        (rng.standard_normal((m, n)) * (2.0 / n) ** 0.5, 0.1 * rng.standard_normal(m)) for n, m in itertools.pairwise(sizes)
    ]
    return tessella.load(layers, relu_output=True), tessella.Box(-scale, scale, dim=sizes[0])


def _windows(inputs: int, widths: tuple[int, ...], reads: int, radius: float):
    """Sparse layers, each unit reading some neighbours, as convolutions do; the first one dense."""
    import numpy as np  # noqa: PLC0415
    from scipy.sparse import csr_array  # noqa: PLC0415

    import tessella  # noqa: PLC0415

    rng, layers, before = np.random.default_rng(0), [], inputs
    for number, width in enumerate(widths):
        if number == 0:
            weight = rng.standard_normal((width, inputs)) / inputs**0.5
        else:
            near = (np.arange(width)[:, None] * before // width + np.arange(reads)) % before
            values = rng.standard_normal((width, reads)) * (2.0 / reads) ** 0.5
            weight = csr_array((values.ravel(), near.ravel(), np.arange(0, width * reads + 1, reads)), shape=(width, before))
        layers.append(tessella.Layer(weight, 0.1 * rng.standard_normal(width)))
        before = width
    return tessella.Network(tuple(layers)), tessella.Box(-radius, radius, dim=inputs)


_SYNTHETIC = {
    "784-256-256-10": lambda: _dense(784, 256, 256, 10),
    "100-2000-2000": lambda: _dense(100, 2000, 2000),
    "16 inputs, 77,824 ReLUs": lambda: _windows(16, (32_768, 16_384, 16_384, 8_192, 4_096), 72, 1.0),
    "3072 inputs, 167,936 ReLUs": lambda: _windows(3072, (2_048, 65_536, 65_536, 32_768, 2_048), 27, 0.01),
    "20 layers of 10,000": lambda: _windows(50, (10_000,) * 20, 9, 0.1),
    "one layer of 1,000,000": lambda: _windows(4, (1_000_000,), 4, 1.0),
    "one layer of 1,000,000, wide": lambda: _windows(50, (1_000_000,), 4, 1.0),
}

if __name__ == "__main__":
    main()
