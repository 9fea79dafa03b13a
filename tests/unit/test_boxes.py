"""Boxes from data, around points, and in files."""

import numpy as np
import pytest

import tessella
from tessella.domain import Box
from tessella.errors import DomainError, FileError, FileMissing
from tessella.importers.boxes import read_box


def test_from_data():
    data = np.random.default_rng(0).normal(size=(50, 3))
    box = Box.from_data(data)
    assert box.contains(data).all()
    assert np.array_equal(box.lower, data.min(axis=0))
    assert np.array_equal(box.upper, data.max(axis=0))
    assert Box.from_data(data, 0.5) == Box(box.lower - 0.5, box.upper + 0.5)
    margins = np.array([0.0, 1.0, 2.0])
    assert Box.from_data(data, margins) == Box(box.lower - margins, box.upper + margins)
    assert Box.from_data(data.astype(np.float32).reshape(50, 1, 3)).dim == 3
    assert Box.from_data([[1, 2]]).free_dim == 0


def test_from_data_holds_the_data_whatever_the_margin_rounds_to():
    data = np.array([[1e16, 1.0], [1.0, 1e-30]])
    assert Box.from_data(data, 1e-3).contains(data).all()


@pytest.mark.parametrize(
    ("data", "margin", "words"),
    [
        ([1.0, 2.0], 0.0, "one row per example"),
        ([], 0.0, "one row per example"),
        (np.zeros((0, 3)), 0.0, "one row per example"),
        ([[1.0], [1.0, 2.0]], 0.0, "data"),
        ([[np.nan]], 0.0, "finite"),
        ([["a"]], 0.0, "no real numbers"),
        ([[1.0, 2.0]], -1.0, "at least 0"),
        ([[1.0, 2.0]], [1.0, 2.0, 3.0], "each of the 2 inputs"),
    ],
)
def test_other_data_is_refused(data, margin, words):
    with pytest.raises(DomainError, match=words) as caught:
        Box.from_data(data, margin)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "make", [lambda: Box.around([1.7e308, 0.0], 1e308), lambda: Box.from_data([[-1.7e308], [0.0]], margin=1e308)]
)
def test_a_box_that_passes_the_largest_number_does_not_become_endless(make):
    with pytest.raises(DomainError, match="beyond the largest floating-point number"):
        make()


def test_around_an_image():
    image = np.arange(12.0).reshape(3, 2, 2)
    box = Box.around(image, 0.5, within=Box(0, 11, dim=12))
    assert box.lower.tolist() == [0.0, *(np.arange(1, 12) - 0.5)]
    assert box.upper.tolist() == [*(np.arange(11) + 0.5), 11.0]
    assert Box.around(image, np.full((3, 2, 2), 0.5)) == Box.around(image.ravel(), 0.5)


def test_boxes_in_files(tmp_path):
    lower, upper = np.array([0.0, -1.0, 2.0]), np.array([1.0, 1.0, 2.5])
    expected = Box(lower, upper)
    np.save(tmp_path / "rows.npy", np.stack([lower, upper]))
    np.save(tmp_path / "images.npy", np.stack([lower, upper]).reshape(2, 1, 3))
    np.save(tmp_path / "columns.npy", np.stack([lower, upper], axis=1))
    np.savez(tmp_path / "named.npz", upper=upper.reshape(3, 1), lower=lower, label=3)
    np.savez(tmp_path / "one.npz", np.stack([lower, upper]))
    (tmp_path / "rows.csv").write_text("0, -1, 2\n1, 1, 2.5\n")
    (tmp_path / "columns.csv").write_text("0,1\n-1,1\n2,2.5\n")
    (tmp_path / "named.csv").write_text('\ufeff"Upper", lower\n1,0\n1,-1\n2.5,2\n')
    (tmp_path / "titled.csv").write_text('\n"x","y (cm)",z\n\n0, -1, 2\n1, 1, 2.5\n')
    (tmp_path / "noted.csv").write_text("# both corners\n0, -1, 2\n1, 1, 2.5\n")
    for name, words in [
        ("titled.csv", "two rows"),
        ("noted.csv", "two rows"),
        ("rows.npy", "two rows"),
        ("images.npy", "two rows"),
        ("columns.npy", "two columns"),
        ("named.npz", "by name"),
        ("one.npz", "two rows"),
        ("rows.csv", "two rows"),
        ("columns.csv", "two columns"),
        ("named.csv", "by name"),
    ]:
        box, read_as = read_box(tmp_path / name, 3)
        assert box == expected, name
        assert words in read_as, name


def test_data_in_files(tmp_path):
    data = np.random.default_rng(0).normal(size=(5, 3))
    np.save(tmp_path / "data.npy", data)
    assert read_box(tmp_path / "data.npy", 3) == (Box.from_data(data), "5 rows of data: the smallest box around them")
    np.save(tmp_path / "images.npy", np.zeros((7, 2, 2)))
    assert read_box(tmp_path / "images.npy", 4)[0] == Box(0, 0, dim=4)
    with pytest.raises(FileError, match="holds 5 rows of 3 numbers, but there are 4 inputs"):
        read_box(tmp_path / "data.npy", 4)


def test_two_rows_of_two_numbers(tmp_path):
    path = tmp_path / "small.csv"
    for text, box in [
        ("0,0\n1,2\n", Box([0, 0], [1, 2])),  # as intervals both would be fixed
        ("0,1\n-2,2\n", Box([0, -2], [1, 2])),  # as corners it would be empty
        ("1,2\n-3,-2\n", Box([1, -3], [2, -2])),
        ("lower,upper\n0,1\n0,1\n", Box(0, 1, dim=2)),
    ]:
        path.write_text(text)
        assert read_box(path, 2)[0] == box, text
    for text, words in [("0,1\n0.5,3\n", "corners or intervals; name them"), ("1,0\n0,-1\n", "neither")]:
        path.write_text(text)
        with pytest.raises(DomainError, match=words):
            read_box(path, 2)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"lower": [0.0, 0.0], "upper": [1.0, 1.0, 1.0]}, "lower has 2 numbers, but there are 3 inputs"),
        ({"lower": [0.0, 0.0, 2.0], "upper": [1.0, 1.0, 1.0]}, "the box is empty: input 2"),
        ({"low": [0.0], "high": [1.0]}, "holds the arrays low, high; a box is the arrays lower and upper"),
        ({"box": [[np.nan] * 3, [1.0] * 3]}, "holds nan; corners are numbers"),
        ({"box": np.array([[None] * 3] * 2)}, "Python objects or a pickle, which are never loaded"),
        ({"box": [["a", "b"]]}, "one row of numbers"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path, arrays, words):
    np.savez(tmp_path / "box.npz", **arrays)
    with pytest.raises(tessella.TessellaError, match=words) as caught:
        read_box(tmp_path / "box.npz", 3)
    assert "\n" not in str(caught.value)
    assert "box.npz" in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileMissing):
        read_box(tmp_path / "box.npy", 3)
