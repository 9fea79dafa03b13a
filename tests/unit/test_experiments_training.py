"""Training the paper's networks: on tiny images, what is saved is what was trained, and what is there is not trained again."""

import gzip
import json
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessella

ROOT = Path(__file__).parents[2]
if not (ROOT / "experiments").is_dir():
    pytest.skip("the experiments are not part of the package", allow_module_level=True)
torch = pytest.importorskip("torch")
sys.path.insert(0, str(ROOT))

from experiments.paper import commands as program  # noqa: E402
from experiments.paper import data as reading  # noqa: E402
from experiments.paper import train as training  # noqa: E402
from experiments.paper.index import Folder, Key, configurations  # noqa: E402

IDX_NAMES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
SHORT = ["--only", "11-11", "3-19", "--seeds", "1", "--epochs", "1"]


def images() -> dict[str, np.ndarray]:
    """4 x 4 images in which the label can be seen."""
    rng = np.random.default_rng(7)
    arrays: dict[str, np.ndarray] = {}
    for part, count in (("train", 150), ("test", 40)):
        labels = np.arange(count, dtype=np.uint8) % 10
        pixels = rng.integers(0, 100, size=(count, 16), dtype=np.uint8)
        pixels[np.arange(count), labels] = 255
        arrays[f"x_{part}"], arrays[f"y_{part}"] = pixels.reshape(count, 4, 4), labels
    return arrays


@pytest.fixture(autouse=True)
def one_thread():
    """On busy cores, threads that wait for each other take seconds over these tiny products."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    path = tmp_path / "mnist.npz"
    np.savez(path, **images())
    return path


def idx_folder(folder: Path, *, packed: bool, dotted: bool = False) -> Path:
    folder.mkdir()
    for part, array in images().items():
        content = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()
        name = IDX_NAMES[part].replace("-idx", ".idx") if dotted else IDX_NAMES[part]
        (folder / (f"{name}.gz" if packed else name)).write_bytes(gzip.compress(content) if packed else content)
    return folder


def run(*arguments: Any) -> int:
    return program.main(["train", *map(str, arguments)])


def records(folder: Path) -> dict[str, dict[str, Any]]:
    lines = (folder / "index.jsonl").read_text().splitlines()
    return {record["file"]: record for record in map(json.loads, lines)}


def test_the_paper_has_21_configurations():
    assert configurations()[0] == (1, 21)
    assert configurations()[-1] == (21, 1)
    assert len(configurations()) == 21
    assert {sum(pair) for pair in configurations()} == {22}


def test_networks_are_saved_and_listed(mnist, tmp_path, capsys):
    out = tmp_path / "nets"
    assert run("--data", mnist, "--out", out, *SHORT) == 0
    assert sorted(path.name for path in out.iterdir()) == ["11_11_0.npz", "3_19_0.npz", "index.jsonl"]
    for file, shape in (("11_11_0.npz", "16-11-11-10"), ("3_19_0.npz", "16-3-19-10")):
        network = tessella.load(out / file)
        record = records(out)[file]
        assert network.shape == record["shape"] == shape
        assert network.fingerprint == record["fingerprint"]
        assert not network.layers[-1].relus
        with np.load(out / file) as arrays:
            assert sorted(arrays) == ["W0", "W1", "W2", "b0", "b1", "b2"]
            assert all(arrays[name].dtype == np.float64 for name in arrays)
        truth = images()
        answers = network(truth["x_test"].reshape(40, 16) / 255.0).argmax(axis=1)
        assert record["test_error"] == pytest.approx(np.mean(answers != truth["y_test"]), abs=1.5 / 40)  # a near tie may turn
        assert record["optimiser"]["name"] == "Adam"
        assert record["epochs"] == 1
        assert record["versions"]["torch"] == torch.__version__
        assert np.isfinite(record["training_cross_entropy"])
    assert "11-11" in capsys.readouterr().out


def test_saved_networks_compute_what_was_trained(mnist, tmp_path):
    digits, folder = reading.read_mnist(mnist), Folder(tmp_path)
    stack = training.Stack([Key(1, 21, 4), Key(11, 11, 4), Key(20, 2, 4)], digits.inputs)
    before = stack.arrays()
    training.fit(stack, 4, digits, training.Recipe(epochs=3), lambda _: None)
    folder.save(stack.arrays(), {})
    points = np.random.default_rng(0).uniform(size=(50, 16))
    with torch.no_grad():
        expected = stack.layers(torch.from_numpy(points.astype(np.float32)))[2].numpy()
    for number, key in enumerate(stack.keys):
        network = tessella.load(tmp_path / key.file)
        assert network.shape == f"16-{key.n1}-{key.n2}-10"
        np.testing.assert_allclose(network(points.astype(np.float32)), expected[number], atol=1e-5)
        assert not np.array_equal(network.layers[0].weight, before[key][0][0])


def test_a_network_is_trained_as_if_alone(mnist):
    """An ordinary torch module from the same numbers, over the same images in the same order."""
    digits, key = reading.read_mnist(mnist), Key(4, 18, 2)
    stack = training.Stack([Key(1, 21, 2), key, Key(21, 1, 2)], digits.inputs)
    linear = [torch.nn.Linear(16, 4), torch.nn.Linear(4, 18), torch.nn.Linear(18, 10)]
    for layer, (weight, bias) in zip(linear, stack.arrays()[key], strict=True):
        layer.weight.data, layer.bias.data = torch.tensor(weight).float(), torch.tensor(bias).float()
    alone = torch.nn.Sequential(linear[0], torch.nn.ReLU(), linear[1], torch.nn.ReLU(), linear[2])
    optimiser = torch.optim.Adam(alone.parameters(), lr=0.01)
    rng = np.random.default_rng(2)
    for _ in range(2):
        order = rng.permutation(150)
        for batch in (order[start : start + 32] for start in range(0, 150, 32)):
            optimiser.zero_grad()
            outputs = alone(torch.from_numpy(digits.x_train[batch]))
            torch.nn.functional.cross_entropy(outputs, torch.from_numpy(digits.y_train[batch])).backward()
            optimiser.step()
    training.fit(stack, 2, digits, training.Recipe(epochs=2, batch_size=32, learning_rate=0.01), lambda _: None)
    for layer, (weight, bias) in zip(linear, stack.arrays()[key], strict=True):
        np.testing.assert_allclose(weight, layer.weight.detach().numpy(), atol=1e-4)
        np.testing.assert_allclose(bias, layer.bias.detach().numpy(), atol=1e-4)


def test_a_seed_gives_its_networks_whatever_else_is_trained(mnist, tmp_path):
    assert run("--data", mnist, "--out", tmp_path / "a", "--only", "11-11", "--seeds", 3, "--epochs", 1) == 0
    assert (
        run("--data", mnist, "--out", tmp_path / "b", "--only", "11-11", "2-20", "--seeds", 1, "--first-seed", 2, "--epochs", 1)
        == 0
    )
    one, other = tessella.load(tmp_path / "a" / "11_11_2.npz"), tessella.load(tmp_path / "b" / "11_11_2.npz")
    for left, right in zip(one.layers, other.layers, strict=True):
        np.testing.assert_allclose(left.dense(), right.dense(), atol=1e-5)
    assert one != tessella.load(tmp_path / "a" / "11_11_1.npz")


def test_dead_networks_are_marked(mnist):
    digits = reading.read_mnist(mnist)
    stack = training.Stack([Key(1, 21, 0), Key(11, 11, 0)], digits.inputs)
    with torch.no_grad():
        stack.parameters[1][0] = -100.0  # the bias of the only unit
        stack.parameters[1][1] = -100.0  # and of one among eleven
    measured = training.evaluate(stack, digits)
    assert measured[Key(1, 21, 0)]["dead"]
    assert measured[Key(1, 21, 0)]["dead_units"][0] == 1
    assert measured[Key(1, 21, 0)]["test_error"] == pytest.approx(0.9)
    assert not measured[Key(11, 11, 0)]["dead"]
    assert measured[Key(11, 11, 0)]["dead_units"][0] >= 1


def test_what_is_there_is_skipped_unless_forced(mnist, tmp_path, capsys):
    out = tmp_path / "nets"
    assert run("--data", mnist, "--out", out, *SHORT) == 0
    stamps = {path.name: path.stat().st_mtime_ns for path in out.glob("*.npz")}
    (out / "3_19_0.npz").unlink()
    capsys.readouterr()
    assert run("--data", mnist, "--out", out, *SHORT) == 0
    assert "1 of 2 networks are" in capsys.readouterr().err
    assert (out / "3_19_0.npz").stat().st_mtime_ns != stamps["3_19_0.npz"]
    assert (out / "11_11_0.npz").stat().st_mtime_ns == stamps["11_11_0.npz"]
    assert run("--data", mnist, "--out", out, *SHORT, "--force") == 0
    assert (out / "11_11_0.npz").stat().st_mtime_ns != stamps["11_11_0.npz"]
    assert sorted(records(out)) == ["11_11_0.npz", "3_19_0.npz"]
    assert len((out / "index.jsonl").read_text().splitlines()) == 2


def test_other_settings_are_not_mixed_in(mnist, tmp_path, capsys):
    out = tmp_path / "nets"
    assert run("--data", mnist, "--out", out, *SHORT) == 0
    capsys.readouterr()
    assert run("--data", mnist, "--out", out, *SHORT[:-1], "2") == 2
    assert "was trained with epochs 1, not 2" in capsys.readouterr().err
    other = images() | {"y_test": images()["y_test"][::-1]}
    np.savez(mnist, **other)
    assert run("--data", mnist, "--out", out, *SHORT) == 2
    assert "3_19_0.npz: was trained on other images (mnist.npz); choose" in capsys.readouterr().err
    assert run("--data", mnist, "--out", out, "--only", "4-18", *SHORT[3:]) == 2  # another network of the same folder
    assert "3_19_0.npz: was trained on other images" in capsys.readouterr().err


def test_ctrl_c_keeps_what_is_saved(mnist, tmp_path, capsys, monkeypatch):
    out, fit = tmp_path / "nets", training.fit

    def interrupted(stack, seed, *rest):
        if seed == 1:
            signal.raise_signal(signal.SIGINT)
        fit(stack, seed, *rest)

    monkeypatch.setattr(training, "fit", interrupted)
    assert run("--data", mnist, "--out", out, "--only", "11-11", "--seeds", 2, "--epochs", 1) == 130
    assert "1 new network in" in capsys.readouterr().err
    assert sorted(records(out)) == ["11_11_0.npz"]


@pytest.mark.parametrize(("packed", "dotted"), [(False, False), (True, False), (True, True)])
def test_idx_files_and_npz_hold_the_same_images(mnist, tmp_path, packed, dotted):
    from_npz = reading.read_mnist(mnist)
    from_idx = reading.read_mnist(idx_folder(tmp_path / "idx", packed=packed, dotted=dotted))
    assert from_idx.record()["data_sha256"] == from_npz.record()["data_sha256"]
    assert from_npz.x_train.shape == (150, 16)
    assert from_npz.x_train.dtype == np.float32
    assert from_npz.x_train.max() == 1.0


def test_floats_from_0_to_1_are_taken_as_they_are(mnist):
    before = reading.read_mnist(mnist).x_test
    arrays = images()
    np.savez(mnist, **arrays | {part: arrays[part] / 255.0 for part in ("x_train", "x_test")})
    np.testing.assert_allclose(reading.read_mnist(mnist).x_test, before, atol=1e-7)


def broken(folder: Path, kind: str) -> Path:
    """A path that holds no MNIST."""
    path, arrays = folder / "bad.npz", images()
    changed = {
        "keys": {"images": arrays["x_train"]},
        "labels": arrays | {"y_train": arrays["y_train"] + 1},
        "lengths": arrays | {"y_test": arrays["y_test"][:3]},
        "pixels": arrays | {"x_test": arrays["x_test"][:, :3]},
        "range": arrays | {"x_train": arrays["x_train"].astype(float)},
        "nan": arrays | {"x_train": np.full((150, 4, 4), np.nan)},
        "objects": arrays | {"x_train": arrays["x_train"].astype(object)},
    }
    if kind in changed:
        np.savez(path, **changed[kind])
    elif kind == "text":
        path.write_text("no archive")
    elif kind == "cut":
        np.savez(path, **arrays)
        path.write_bytes(path.read_bytes()[:500])
    elif kind == "npy":
        with path.open("wb") as file:
            np.save(file, arrays["x_train"])
    elif kind.startswith("idx"):
        path = idx_folder(folder / "idx", packed=kind == "idx gz")
        image_file = path / (IDX_NAMES["x_train"] + (".gz" if kind == "idx gz" else ""))
        content = image_file.read_bytes()
        image_file.write_bytes({"idx gz": content[:50], "idx short": content[:-1], "idx type": b"\0\0\x0d" + content[3:]}[kind])
    elif kind == "empty folder":
        path = folder / "empty"
        path.mkdir()
    return path


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("missing", "there is no such file or folder"),
        ("text", "cannot be read as an .npz"),
        ("cut", "cannot be read as an .npz"),
        ("objects", "cannot be read as an .npz"),
        ("npy", "has no array x_train"),
        ("keys", "has no array x_train, y_train"),
        ("labels", "reaches from 1 to 10; expected labels from 0 to 9"),
        ("lengths", "y_test (3,)"),
        ("pixels", "they must agree"),
        ("range", "from 0 to 1"),
        ("nan", "from 0 to 1"),
        ("idx gz", "fetch the file again"),
        ("idx short", "announces the shape (150, 4, 4)"),
        ("idx type", "is no idx file of unsigned bytes"),
        ("empty folder", "has no file train-images-idx3-ubyte"),
    ],
)
def test_what_is_no_mnist_is_refused_in_one_line(tmp_path, capsys, kind, words):
    assert run("--data", broken(tmp_path, kind), "--out", tmp_path / "nets") == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not (tmp_path / "nets").exists()


def test_wrong_options_are_refused(mnist, tmp_path, capsys):
    assert run("--data", mnist, "--only", "11-12") == 2
    assert "sum to 22" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert run("--data", mnist, "--out", tmp_path / "file", *SHORT) == 2
    assert "choose another --out" in capsys.readouterr().err
    (tmp_path / "index.jsonl").write_text("{}\n")
    assert run("--data", mnist, "--out", tmp_path, *SHORT) == 2
    assert "line 1 is no record" in capsys.readouterr().err
    for wrong in (["--seeds", "0"], ["--epochs", "x"], ["--learning-rate", "-1"], ["--digits"], ["--first-seed", "-1"]):
        with pytest.raises(SystemExit) as stopped:
            run("--data", mnist, *wrong)
        assert stopped.value.code == 2
    assert run("--data", mnist, "--out", tmp_path / "nets", "--learning-rate", "1e30", *SHORT) == 2
    assert "diverged" in capsys.readouterr().err


def test_digits_need_no_file(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn")
    assert run("--digits", "--out", tmp_path, "--only", "11-11", "--seeds", "1", "--epochs", "1") == 0
    assert tessella.load(tmp_path / "11_11_0.npz").shape == "64-11-11-10"
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert run("--digits", "--out", tmp_path) == 2
    assert "pip install scikit-learn" in capsys.readouterr().err


def test_help_has_examples():
    command = [sys.executable, "-m", "experiments.paper", "train", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--data mnist.npz --out nets/" in done.stdout
