"""Files of Keras models: what is read, what is refused, and that nothing in them is run."""

import io
import json
import logging
import os
import subprocess
import sys
import warnings
import zipfile

os.environ.setdefault("KERAS_BACKEND", "torch")

import pytest

from tessella.errors import FileError, FileMissing, TessellaError, UnsupportedModel, UnsupportedOperator
from tessella.importers.keras import from_model, read_keras
from tessella.importers.keras_archive import LARGEST_CONTENT

keras = pytest.importorskip("keras")
h5py = pytest.importorskip("h5py")
L = keras.layers
ops = keras.ops
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:keras.*")  # what Keras itself does in these tests


@pytest.fixture
def saved(tmp_path):
    entry = keras.Input((4,))
    hidden = L.Add()([L.Dense(4, activation="relu")(entry), entry])
    model = keras.Model(entry, L.Dense(2)(hidden))
    model.compile("adam", "mse")
    path = tmp_path / "net.keras"
    model.save(path)
    return path, model


def rewritten(path, target, change=None, **members):
    """A copy of an archive with another description, or other members."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    if change is not None:
        config = json.loads(content["config.json"])
        change(config)
        content["config.json"] = json.dumps(config).encode()
    content |= members
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in content.items():
            if data is not None:
                archive.writestr(name, data)
    return target


def test_files(saved):
    path, model = saved
    network = read_keras(path)
    assert network == from_model(model)
    assert network.source.name == "net.keras"
    assert network.source.input_shape == (4,)
    assert read_keras(str(path), input_shape=(4,)) == network


def test_nested_models_survive_a_file(tmp_path):
    inner = keras.Sequential([keras.Input((3,)), L.Dense(3, activation="relu")])
    inner.compile("sgd", "mse")
    model = keras.Sequential([keras.Input((4,)), L.Dense(3), inner, L.Dense(2)])
    model.save(tmp_path / "net.keras")
    assert read_keras(tmp_path / "net.keras") == from_model(model)


def test_missing_and_foreign_files(tmp_path):
    with pytest.raises(FileMissing, match="no such file"):
        read_keras(tmp_path / "none.keras")
    with pytest.raises(FileError, match="is a folder"):
        read_keras(tmp_path)
    for name, content, message in [
        ("a.keras", b"", "is empty"),
        ("b.keras", b"hello", "is not a .keras file"),
        ("c.keras", b"\x89HDF\r\n\x1a\n" + bytes(100), "legacy HDF5"),
        ("d.h5", b"\x89HDF\r\n\x1a\n", r"legacy HDF5.*model\.save"),
        ("e.HDF5", b"x", r"legacy HDF5.*model\.save"),
        ("f.zip", b"PK", "suffix .keras"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FileError, match=message) as caught:
            read_keras(tmp_path / name)
        assert str(caught.value).startswith(str(tmp_path / name))
        assert "\n" not in str(caught.value)


def test_archives_with_other_members(saved, tmp_path):
    path, _ = saved
    for members, message in [
        ({"config.json": None}, "config.json is missing"),
        ({"model.weights.h5": None}, "model.weights.h5 is missing"),
        ({"assets/x": b"1"}, "holds 'assets/x'"),
        ({"../x": b"1"}, "besides one each"),
        ({"config.json": b"{"}, "JSONDecodeError"),
        ({"config.json": b"[" * 100_000}, "RecursionError"),
        ({"config.json": b"[]"}, "describes no model"),
        ({"config.json": b"{}"}, "describes no model"),
        ({"config.json": b'{"class_name": "__numpy__", "config": {"value": 1, "dtype": "int8"}}'}, "describes no model"),
        ({"model.weights.h5": b"nothing"}, "cannot be read as a Keras model"),
    ]:
        target = rewritten(path, tmp_path / "other.keras", **members)
        with pytest.raises(FileError, match=message):
            read_keras(target)


def test_truncated_files(saved, tmp_path):
    path, _ = saved
    content = path.read_bytes()
    target = tmp_path / "cut.keras"
    for length in (1, 100, len(content) // 2, len(content) - 1):
        target.write_bytes(content[:length])
        with pytest.raises(FileError):
            read_keras(target)


def test_declared_sizes_are_capped(saved, tmp_path):
    path, _ = saved
    target = tmp_path / "bomb.keras"
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")  # the last member in the central directory, the weights
    content[entry + 24 : entry + 28] = (2**32 - 2).to_bytes(4, "little")
    target.write_bytes(content)
    with pytest.raises(FileError, match="would unpack to"):
        read_keras(target)

    def weights(**options):
        buffer = io.BytesIO()
        with h5py.File(buffer, "w") as file:
            file.create_dataset("x", **options)
        return {"model.weights.h5": buffer.getvalue()}

    huge = weights(shape=(LARGEST_CONTENT,), dtype="float32", chunks=(1000,), compression="gzip")
    with pytest.raises(FileError, match="declares weights of"):
        read_keras(rewritten(path, target, **huge))
    with pytest.raises(FileError, match="other than an array of numbers"):
        read_keras(rewritten(path, target, **weights(data="text")))

    def units(config):
        config["config"]["layers"][1]["config"]["units"] = 10**9

    def shape(config):
        config["config"]["layers"][0]["config"]["batch_shape"] = [None, 10**9]

    with pytest.raises(FileError, match="units=1000000000, but no stored weight"):
        read_keras(rewritten(path, target, units))
    with pytest.raises(UnsupportedModel, match="at most"):
        read_keras(rewritten(path, target, shape))


@pytest.mark.parametrize("link", [lambda: h5py.ExternalLink("/etc/hostname", "/"), lambda: h5py.SoftLink("/")])
def test_links_in_weights_are_not_followed(saved, tmp_path, link):
    path, _ = saved
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file["layers"] = link()
    with pytest.raises(FileError, match="a link at"):
        read_keras(rewritten(path, tmp_path / "link.keras", **{"model.weights.h5": buffer.getvalue()}))


def test_hard_links_in_a_circle(saved, tmp_path):
    path, _ = saved
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file["a/b"] = file.create_group("c")
        file["c/a"] = file["a"]
    with pytest.raises(FileError, match="a link at"):
        read_keras(rewritten(path, tmp_path / "link.keras", **{"model.weights.h5": buffer.getvalue()}))


def replaced_layer(entry):
    def change(config):
        old = config["config"]["layers"][1]
        config["config"]["layers"][1] = {**entry, "name": old["name"], "inbound_nodes": old["inbound_nodes"]}

    return change


@pytest.fixture
def unsafe():
    keras.config.enable_unsafe_deserialization()
    yield
    keras.src.backend.common.global_state.set_global_attribute("safe_mode_saving", None)


def test_lambda_layers_are_never_run(tmp_path, unsafe):
    marker = tmp_path / "ran"
    code = eval(f"lambda x: (__import__('pathlib').Path({str(marker)!r}).touch(), x)[1]")  # noqa: S307
    path = tmp_path / "bad.keras"
    keras.Sequential([keras.Input((3,)), L.Lambda(code)]).save(path)
    marker.unlink()
    with pytest.raises(UnsupportedOperator, match="Lambda, which is Python code and is never run"):
        read_keras(path)
    assert not marker.exists()
    keras.saving.load_model(path, compile=False, safe_mode=True)
    assert marker.exists()  # Keras alone would have run it, once its safe mode was switched off


@pytest.mark.parametrize(
    "entry",
    [
        {"module": "evil_module", "class_name": "Layer", "config": {"name": "x"}, "registered_name": None},
        {"module": "os", "class_name": "function", "config": "system", "registered_name": "system"},
        {"module": "builtins", "class_name": "function", "config": "eval", "registered_name": "eval"},
        {"module": "builtins", "class_name": "Layer", "config": {}, "registered_name": None},
        {"module": None, "class_name": "Dense", "config": {"units": 2}, "registered_name": "mine>Dense"},
        {"module": "keras.layers", "class_name": "Dense", "config": {"units": 2}, "registered_name": "mine>Dense"},
        {"class_name": "Dense", "config": {"units": 2}},
        {"module": "keras.layers", "class_name": "TFSMLayer", "config": {"filepath": "/x"}, "registered_name": None},
        {"module": "keras.layers", "class_name": "TorchModuleWrapper", "config": {"module": ""}, "registered_name": None},
        {"module": "keras.utils", "class_name": "function", "config": "get_file", "registered_name": "get_file"},
        {"module": "keras.saving", "class_name": "load_model", "config": {}, "registered_name": None},
        {"module": "keras.src.ops.numpy", "class_name": "Sin", "config": {}, "registered_name": "Sin"},
        {"class_name": "__lambda__", "config": {"value": "x"}},
        {"class_name": "__typespec__", "spec_name": "x", "module": "evil_module", "config": [], "registered_name": None},
        {"module": ["keras"], "class_name": "Dense", "config": {}},
        {"module": "keras.layers", "class_name": ["Dense"], "config": {}},
        {"module": "keras.layers", "class_name": {"a": 1}, "config": {}},
    ],
)
def test_foreign_classes_are_never_imported(saved, tmp_path, entry, monkeypatch):
    path, _ = saved
    (tmp_path / "evil_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    target = rewritten(path, tmp_path / "bad.keras", replaced_layer(entry))
    monkeypatch.setattr(keras.saving, "load_model", lambda *_, **__: pytest.fail("Keras was asked to load it"))
    with pytest.raises(UnsupportedOperator) as caught:
        read_keras(target)
    assert str(caught.value).startswith(str(target))
    assert "evil_module" not in sys.modules


def test_foreign_initializers_are_refused(saved, tmp_path):
    path, _ = saved

    def change(config):
        config["config"]["layers"][1]["config"]["kernel_initializer"]["module"] = "evil_module"

    with pytest.raises(UnsupportedOperator, match="from the module evil_module"):
        read_keras(rewritten(path, tmp_path / "bad.keras", change))


def test_unsupported_layers_in_files(tmp_path):
    model = keras.Sequential([keras.Input((3,)), L.Dense(2), L.ELU(name="bent")])
    model.save(tmp_path / "net.keras")
    with pytest.raises(UnsupportedOperator, match="layer 'bent': a layer of class ELU"):
        read_keras(tmp_path / "net.keras")
    keras.Sequential([keras.Input((3,)), L.Dense(2, activation="gelu")]).save(tmp_path / "net.keras")
    with pytest.raises(UnsupportedOperator, match="cut the model before it"):
        read_keras(tmp_path / "net.keras")


def test_files_of_own_losses_are_read(tmp_path):
    def loss(expected, found):
        return ops.mean(expected - found)

    model = keras.Sequential([keras.Input((3,)), L.Dense(2, activation="relu")])
    model.compile("adam", loss)
    model.save(tmp_path / "net.keras")
    assert read_keras(tmp_path / "net.keras") == from_model(model)


def test_weights_that_do_not_fit(saved, tmp_path):
    path, _ = saved

    def change(config):
        config["config"]["layers"][1]["config"]["units"] = 3

    with pytest.raises(FileError, match="Keras cannot load it"):
        read_keras(rewritten(path, tmp_path / "bad.keras", change))


def test_nothing_is_said(saved, tmp_path, capfd, caplog):
    path, model = saved
    with warnings.catch_warnings(record=True) as heard, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        read_keras(path)
        from_model(model)
        with pytest.raises(TessellaError):
            read_keras(rewritten(path, tmp_path / "bad.keras", replaced_layer({"class_name": "Dense", "config": {}})))
    assert not heard
    assert not [record for record in caplog.records if record.name == "absl"]
    assert capfd.readouterr() == ("", "")


SCRIPT = """
import sys
{before}
from tessella.errors import MissingPackage
from tessella.importers.keras import from_model
try:
    from_model(None)
except MissingPackage as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("before", "backend", "message"),
    [
        ("sys.modules['keras'] = None", "torch", "pip install keras"),
        ("", "nonsense", "set the environment variable KERAS_BACKEND"),
        ("sys.modules.update(tensorflow=None, torch=None, jax=None)", None, "set the environment variable KERAS_BACKEND"),
    ],
)
def test_missing_packages(before, backend, message, tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "KERAS_BACKEND"} | {"KERAS_HOME": str(tmp_path)}
    if backend is not None:
        environment["KERAS_BACKEND"] = backend
    script = SCRIPT.format(before=before)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert message in ended.stdout, ended.stderr
    assert ended.stderr == ""
