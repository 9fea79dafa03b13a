"""Regions while a network is trained: nothing but the records may differ."""

import csv
import sys
import types

import numpy as np
import pytest

import tessella
from tessella.tracking import Record

torch = pytest.importorskip("torch")
BOX = tessella.Box.cube(-1.0, 1.0, 2)


def module(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(2, 6),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(6, 5),
        torch.nn.ReLU(),
        torch.nn.Linear(5, 1),
    )


def trained(epochs, tracker_of=None):
    """The weights after some epochs of a loop that draws random numbers, and the tracker."""
    net = module()
    tracker = tracker_of(net) if tracker_of else None
    optimiser = torch.optim.Adam(net.parameters(), lr=0.05)
    torch.manual_seed(7)
    np.random.seed(7)  # noqa: NPY002  what users do
    for _ in range(epochs):
        net.train()
        inputs = torch.rand(64, 2) * 2 - 1 + 0.01 * float(np.random.rand())  # noqa: NPY002
        optimiser.zero_grad()
        loss = ((net(inputs) - (inputs**2).sum(dim=1, keepdim=True)) ** 2).mean()
        loss.backward()
        optimiser.step()
        if tracker:
            tracker.step()
            assert all(part.training for part in net.modules())
            assert all(weight.grad is not None for weight in net.parameters())
    state = torch.random.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002
    return [weight.detach().clone() for weight in net.parameters()], state, tracker


def test_training_goes_on_as_if_nobody_looked():
    alone, random_alone, _ = trained(4)
    watched, random_watched, tracker = trained(4, lambda net: tessella.track(net, BOX, probes=3))
    assert all(torch.equal(one, other) for one, other in zip(alone, watched, strict=True))
    assert torch.equal(random_alone[0], random_watched[0])
    assert np.array_equal(random_alone[1], random_watched[1])
    assert [record.epoch for record in tracker.records] == [0, 1, 2, 3]


def test_a_mode_that_was_evaluation_stays_so():
    net = module().eval()
    tessella.track(net, BOX).step()
    assert not any(part.training for part in net.modules())


def test_records_are_the_counts_of_each_epoch():
    net = module()
    tracker = tessella.track(net, BOX, seconds=20.0)
    for factor in (1.0, -2.0):
        with torch.no_grad():
            net[3].weight.mul_(factor)
        record = tracker.step()
        assert record.exact == record.mean == tessella.count(tessella.load(net.eval()), BOX).exact
        assert record.active + record.inactive + record.unstable == 11
    assert tracker.records[0].exact != tracker.records[1].exact


def test_probes_make_it_repeatable():
    one, other = (trained(2, lambda net: tessella.track(net, BOX, probes=20, rng=3))[2] for _ in range(2))
    key = ("maps", "lower", "relative_error")
    assert [[getattr(record, name) for name in key] for record in one.records] == [
        [getattr(record, name) for name in key] for record in other.records
    ]
    assert one.records[0].exact is None
    assert one.records[0].confidence == 0.95


def test_every_few_epochs():
    tracker = tessella.track(module(), BOX, every=3)
    assert [tracker.step() is not None for _ in range(7)] == [True, False, False, True, False, False, True]
    assert tracker.step(epoch=30).epoch == 30
    assert tracker.step() is None


def test_csv_and_tensorboard(tmp_path):
    class Writer:
        def __init__(self):
            self.rows = []

        def add_scalar(self, tag, scalar_value, global_step):
            self.rows.append((tag, scalar_value, global_step))

    writer, path = Writer(), tmp_path / "regions.csv"
    tracker = tessella.track(module(), BOX, path=path, tensorboard=writer)
    tracker.step()
    tracker.step()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["0", "1"]
    assert int(rows[0]["exact"]) == tracker.records[0].exact
    assert ("tessella/regions_log2", pytest.approx(np.log2(tracker.records[1].exact)), 1) in writer.rows
    assert ("tessella/unstable", float(tracker.records[0].unstable), 0) in writer.rows


def test_the_file_has_columns_for_what_is_around_data(tmp_path):
    path, data = tmp_path / "near.csv", np.array([[0.1, 0.2], [0.3, -0.4], [-0.5, 0.6]])[:, : BOX.dim]
    tracker = tessella.track(module(), BOX, path=path, probes=2, data=data, radius=0.1)
    tracker.step()
    with path.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert {name: float(row[name]) for name in tracker.near[0].scalars} == tracker.near[0].scalars
    assert "path_breaks" in tracker.near[0].scalars
    with pytest.raises(tessella.FileError, match="holds no records"):
        tessella.track(module(), BOX, path=path)


def test_a_file_of_records_goes_on_and_others_are_left_alone(tmp_path):
    path, other = tmp_path / "regions.csv", tmp_path / "other.csv"
    for _ in range(2):
        tessella.track(module(), BOX, path=path, probes=2).step()
    with path.open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 2
    other.write_text("a,b\n1,2\n")
    with pytest.raises(tessella.FileError, match="holds no records"):
        tessella.track(module(), BOX, path=other)
    assert other.read_text() == "a,b\n1,2\n"


def test_a_callback_for_lightning(monkeypatch):
    """Lightning's trainer calls hooks of what is derived from its own class."""

    class Callback:
        pass

    package, callbacks = types.ModuleType("lightning.pytorch"), types.ModuleType("lightning.pytorch.callbacks")
    callbacks.Callback = Callback
    monkeypatch.setitem(sys.modules, "lightning", types.ModuleType("lightning"))
    monkeypatch.setitem(sys.modules, "lightning.pytorch", package)
    monkeypatch.setitem(sys.modules, "lightning.pytorch.callbacks", callbacks)
    tracker = tessella.track(module(), BOX)
    hook = tracker.lightning()
    assert isinstance(hook, Callback)
    hook.on_train_epoch_end(types.SimpleNamespace(current_epoch=4, is_global_zero=True), None)
    hook.on_train_epoch_end(types.SimpleNamespace(current_epoch=5, is_global_zero=False), None)
    assert [record.epoch for record in tracker.records] == [4]


def test_a_callback_for_keras(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras")
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(4, activation="relu"), keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer="sgd")
    tracker = tessella.track(model, BOX, every=2)
    inputs = np.random.default_rng(0).uniform(-1, 1, (16, 2))
    history = model.fit(inputs, inputs[:, :1], epochs=3, verbose=0, callbacks=[tracker.keras()])
    assert [record.epoch for record in tracker.records] == [0, 2]
    assert history.history["regions_log2"] == [record.maps for record in tracker.records]


@pytest.mark.parametrize("name", ["lightning", "keras"])
def test_missing_packages_are_named(monkeypatch, name):
    for package in ("lightning.pytorch.callbacks", "pytorch_lightning.callbacks", "keras.callbacks"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(tessella.MissingPackage, match=f"pip install.*{name}"):
        getattr(tessella.track(module(), BOX), name)()


def test_the_first_error_is_raised_and_later_ones_are_warnings():
    net = module()
    tracker = tessella.track(net, BOX)
    tracker.step()
    with torch.no_grad():
        net[0].weight.fill_(float("nan"))
    with pytest.warns(RuntimeWarning, match="epoch 1 has no record"):
        assert tracker.step() is None
    with pytest.raises(tessella.TessellaError):
        tessella.track(net, BOX).step()
    with pytest.raises(tessella.DomainError):
        tessella.track(module(), tessella.Box.cube(0, 1, 3)).step()


def test_options_are_checked(tmp_path):
    with pytest.raises(tessella.OptionError, match="every is 0"):
        tessella.track(module(), BOX, every=0)
    with pytest.raises(tessella.OptionError, match="add_scalar"):
        tessella.track(module(), BOX, tensorboard=3)
    with pytest.raises(tessella.FileError, match="cannot be written"):
        tessella.track(module(), BOX, path=tmp_path / "none" / "file.csv")


def test_huge_numbers_are_no_trouble():
    record = Record(0, 5000.0, 0.1, 2**4990, 0.95, None, 0, 0, 9, 0.1)
    assert record.mean == 2**5000
    assert record.scalars["regions_lower_log2"] == 4990.0
    assert "regions_relative_error" not in Record(0, 3.0, np.inf, 1, 0.95, None, 0, 0, 3, 0.1).scalars


def test_records_say_what_is_counted():
    pooled = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Unflatten(1, (1, 3)), torch.nn.MaxPool1d(3))
    assert tessella.track(pooled, BOX, probes=2).step().counted is tessella.Counted.COMPARISONS
    assert tessella.track(module(), BOX, probes=2).step().counted is tessella.Counted.REGIONS


def test_data_is_looked_at_with_every_record():
    layers, points = [([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.25])], [[-0.5, -0.5], [0.5, 0.5], [0.5, -0.5]]
    tracker = tessella.track(layers, tessella.Box(-1, 1, dim=2), relu_output=True, data=points, radius=0.5)
    tracker.step()
    (near,) = tracker.near
    net = tessella.load(layers, relu_output=True)
    assert near.balls.counts == tessella.local(net, points, 0.5, domain=(-1, 1)).counts == (2, 1, 2)
    assert (near.epoch, near.breaks) == (0, (2, 1))
    assert tracker.rows()[0]["path_breaks"] == 1.5
    alone = tessella.track(layers, tessella.Box(-1, 1, dim=2), relu_output=True, data=points[:1], radius=0.5)
    alone.step()
    assert alone.near[0].path is None
    with pytest.raises(tessella.OptionError, match="data needs a radius"):
        tessella.track(layers, (-1, 1), data=points).step()
    with pytest.raises(tessella.DomainError, match="outside of the domain"):
        tessella.track(layers, tessella.Box(0, 1, dim=2), data=points, radius=0.5).step()
