"""Files of points: what is read, and what is refused."""

import zipfile

import numpy as np
import pytest

from tessella import FileError
from tessella.importers.points import read_points


def test_images_are_read_row_by_row(tmp_path):
    images = np.arange(24).reshape(2, 3, 4)
    np.save(tmp_path / "images.npy", images)
    np.savez(tmp_path / "images.npz", images)
    for name in ("images.npy", "images.npz"):
        points = read_points(tmp_path / name)
        assert points.dtype == np.float64
        assert points.tolist() == images.reshape(2, 12).tolist()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("p.csv", "a,b", "holds no numbers, only 'a,b'"),
        ("p.csv", "1,2\n3", "with commas between them, from its first line on (the number of columns changed"),
        ("p.csv", "0;1\n2;3", "with commas between them, below a line of names: 0;1 (could not convert string '2;3'"),
        ("p.csv", "\n" * 200, "holds no numbers"),
        ("p.csv", "", "is empty"),
        ("p.npz", "no zip", "cannot be read as a .npz"),
        ("p.npy", "nothing", "Python objects or a pickle, which are never loaded"),
        ("p.txt", "1,2", "is of no known kind"),
    ],
)
def test_damaged_files_are_refused_in_one_line(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    with pytest.raises(FileError) as raised:
        read_points(tmp_path / name)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_objects_and_flat_arrays_are_refused(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([[{}, 1]], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match="Python objects or a pickle, which are never loaded"):
        read_points(tmp_path / "objects.npy")
    np.save(tmp_path / "flat.npy", np.arange(3.0))
    with pytest.raises(FileError, match="one row of numbers per point"):
        read_points(tmp_path / "flat.npy")
    np.savez(tmp_path / "two.npz", a=np.eye(2), b=np.eye(2))
    with pytest.raises(FileError, match="one of the name points"):
        read_points(tmp_path / "two.npz")


def test_what_would_unpack_to_too_much_is_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as file, file.open("points.npy", "w") as part:
        for _ in range(260):
            part.write(bytes(2**20))
    with pytest.raises(FileError, match="would unpack"):
        read_points(tmp_path / "bomb.npz")
