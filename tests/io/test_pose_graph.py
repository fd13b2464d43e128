"""Graphs of g2o and TORO: what is read, and what is refused with its line."""

import gzip

import numpy as np
import pytest

from lgcontrol.groups import SE3
from lgcontrol.io import _pose_graph, read_pose_graph

EDGE = "EDGE2 0 1 1.0 2.0 0.5 10 1 20 30 2 3\n"
UPPER = "9 0 0 0 0 0 9 0 0 0 0 9 0 0 0 4 0 0 4 0 4"


def read(tmp_path, text, name="some.g2o"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_pose_graph(path)


def test_planar_graphs_of_both_programs(tmp_path):
    toro = read(tmp_path, "VERTEX2 1 3 4 0.5\n# a remark\n\n" + EDGE)
    np.testing.assert_array_equal(toro.names, [0, 1])
    np.testing.assert_array_equal(toro.edges, [[0, 1]])
    np.testing.assert_allclose(toro.measured, [[1, 2, np.cos(0.5), np.sin(0.5)]])
    np.testing.assert_array_equal(toro.information[0], [[10, 1, 2], [1, 20, 3], [2, 3, 30]])
    assert np.isnan(toro.poses[0]).all() and toro.poses[1, 1] == 4
    g2o = read(tmp_path, "EDGE_SE2 0 1 1.0 2.0 0.5 10 1 2 20 3 30\nFIX 1\n")
    np.testing.assert_array_equal(g2o.information, toro.information)
    assert g2o.poses is None and g2o.fixed.tolist() == [1] and g2o.dimension == 2


def test_spatial_graphs_of_both_programs(tmp_path):
    angles = [0.3, -0.2, 0.9]
    q = SE3.from_euler("ZYX", angles[::-1])[3:]
    toro = read(tmp_path, f"EDGE3 4 7 1 2 3 {' '.join(map(str, angles))} {UPPER}\n")
    g2o = read(tmp_path, f"EDGE_SE3:QUAT 4 7 1 2 3 {' '.join(map(str, q))} {UPPER}\n")
    np.testing.assert_allclose(toro.measured, [[1, 2, 3, *q]])
    np.testing.assert_allclose(g2o.measured, toro.measured)
    np.testing.assert_array_equal(toro.information[0], np.diag([9, 9, 9, 4, 4, 4]))
    np.testing.assert_array_equal(toro.names, [4, 7])


def test_equal_poses_become_one(tmp_path):
    text = "EDGE2 0 1 1 0 0 1 0 1 1 0 0\nEDGE2 1 2 1 0 0 1 0 1 1 0 0\nEDGE2 2 3 1 0 0 1 0 1 1 0 0\n"
    graph = read(tmp_path, gzip.compress((text + "EQUIV 3 1\n").encode()))
    np.testing.assert_array_equal(graph.names, [0, 1, 2])
    np.testing.assert_array_equal(graph.edges, [[0, 1], [1, 2], [2, 1]])
    alone = read(tmp_path, text + "EQUIV 2 1\n")
    np.testing.assert_array_equal(alone.edges, [[0, 1], [1, 2]])


def test_landmarks_are_read_with_where_the_sensor_is(tmp_path):
    planar = read(tmp_path, EDGE + "VERTEX_XY 7 5 6\nEDGE_SE2_XY 1 7 0.5 2 4 1 9\n"
                  "EDGE_SE2_XY 0 4 1 1 1 0 1\nFIX 7\n")  # fmt: skip
    assert planar.landmark_names.tolist() == [4, 7] and planar.fixed_landmarks.tolist() == [1]
    np.testing.assert_array_equal(planar.landmarks, [[np.nan, np.nan], [5, 6]])
    np.testing.assert_array_equal(planar.sights, [[1, 1], [0, 0]])
    np.testing.assert_array_equal(planar.sight_information[0], [[4, 1], [1, 9]])
    turn = SE3.from_euler("ZYX", [np.pi / 2, 0.0, 0.0])[3:]  # x of the sensor is y of the body
    spatial = read(
        tmp_path,
        f"PARAMS_SE3OFFSET 3 1 0 0 {' '.join(map(str, turn))}\n"
        f"EDGE_SE3:QUAT 0 1 1 0 0 0 0 0 1 {UPPER}\n"
        "EDGE_SE3_TRACKXYZ 0 9 3 2 0 0 4 0 0 1 0 1\n",
    )
    np.testing.assert_allclose(spatial.seen, [[1, 2, 0]], atol=1e-15)
    np.testing.assert_allclose(spatial.sight_information[0], np.diag([1, 4, 1]), atol=1e-15)
    assert spatial.landmarks is None and planar.dimension == 2


BROKEN = {
    "an unknown word": (EDGE + "EDGE4 0 1 2\n", r"line 2: unknown word 'EDGE4'; known are VERTEX2"),
    "too few numbers": (
        "EDGE2 0 1 1.0 2.0\n",
        "line 1: EDGE2 needs 2 whole numbers, which are names, and 9 n",
    ),
    "not a number": (EDGE.replace("2.0", "nan"), "line 1: 'nan' is no finite decimal number"),
    "underscores": (EDGE.replace("10", "1_0"), "'1_0' is no finite"),
    "too large": (EDGE.replace("2.0", "1e999"), "too large"),
    "digits of others": (EDGE.replace("2.0", "١"), "no finite decimal"),
    "half an exponent": (EDGE.replace("2.0", "1e"), "line 1: could not convert"),
    "a negative name": (EDGE.replace(" 0 1", " -1 1"), "'-1' is no whole number"),
    "a huge name": (EDGE.replace(" 0 1", f" {10**30} 1"), "is no whole number"),
    "a loop": (EDGE.replace(" 0 1", " 1 1"), "from 1 to itself"),
    "dimensions": (EDGE + "VERTEX3 0 0 0 0 0 0 0\n", "line 2: VERTEX3 is of 3 dimensions"),
    "a quaternion": (f"EDGE_SE3:QUAT 0 1 0 0 0 0 0 0 2 {UPPER}\n", "has length 2, expected 1"),
    "information": (EDGE.replace("20", "-20"), "line 1: the information has eigenvalues from -20"),
    "no information": ("EDGE2 0 1 1 2 0.5 0 0 0 0 0 0\n", "eigenvalues from 0 to 0"),
    "twice": ("VERTEX2 0 0 0 0\n" * 2 + EDGE, "line 2: pose 0 was there before"),
    "nothing": ("VERTEX2 0 0 0 0\n", "no edges, so no graph"),
    "all equal": (EDGE + "EQUIV 0 1\n", "no edges between different poses"),
    "a sight alone": (
        "EDGE_SE2_XY 0 9 1 2 1 0 1\n",
        "no edges, so no graph; sights of landmarks alone",
    ),
    "a landmark's name": (EDGE + "VERTEX_XY 1 0 0\n", "1 names a pose and a landmark"),
    "a landmark twice": ("VERTEX_XY 9 0 0\n" * 2 + EDGE, "line 2: landmark 9 was there before"),
    "a landmark as pose": ("VERTEX2 9 0 0 0\nVERTEX_XY 9 0 0\n" + EDGE, "line 2: landmark 9 was"),
    "equal landmarks": (EDGE + "EDGE_SE2_XY 0 9 1 2 1 0 1\nEQUIV 9 1\n", "EQUIV is for poses, 9"),
    "no sensor": (
        f"EDGE_SE3:QUAT 0 1 0 0 0 0 0 0 1 {UPPER}\nEDGE_SE3_TRACKXYZ 0 9 5 1 2 3 1 0 0 1 0 1\n",
        "line 2: there is no sensor 5; a line PARAMS_SE3OFFSET 5",
    ),
    "fixes none": (EDGE + "FIX 9\n", "there is no pose 9"),
    "a long line": ("# " + "x" * 9999 + "\nEDGE2 " + "1" * 5000 + "\n", "line 2: longer than 4096"),
    "no text": (b"\xff\xfe\x00EDGE2", "is no text"),
    "cut off": (gzip.compress(EDGE.encode() * 9)[:-9], "is no whole gzip file"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_refused(case, tmp_path):
    text, message = BROKEN[case]
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text)


def test_files_that_are_not_there_or_unpack_to_too_much(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_pose_graph(tmp_path / "none.g2o")
    monkeypatch.setattr(_pose_graph, "LARGEST_TEXT", 2**16)
    with pytest.raises(ValueError, match="holds more than"):
        read(tmp_path, gzip.compress(b"#" * 2**20))
