from drol.data.dimensions import Dimensions
from drol.data.readers.columns import IMAGE, Column, dimensions_of, find_unused, split_unit


def test_units_in_headers_are_found():
    assert split_unit("speed [m/s]") == ("speed", "m/s")
    assert split_unit("q0 (rad)") == ("q0", "rad")
    for name in ("joint[2]", "joint(2)", "speed", "[m]", "a [b] c"):
        assert split_unit(name) == (name, "")


def test_the_numbers_of_columns_are_named_in_order():
    columns = {"x": Column("x", unit="m"), "q": Column("q", shape=(2,)), "v": Column("v", shape=(1,), names=("speed",))}
    found = dimensions_of(["q", "x", "v"], columns)
    assert found == Dimensions(("q[0]", "q[1]", "x", "speed"), ("", "", "m", ""))


def test_names_that_two_columns_share_are_told_apart():
    columns = {side: Column(side, shape=(2,), names=("elbow", "wrist")) for side in ("left", "right")}
    found = dimensions_of(["left", "right"], columns)
    assert found.names == ("left.elbow", "left.wrist", "right.elbow", "right.wrist")


def test_images_and_long_vectors_have_no_names():
    columns = {"image": Column("image", IMAGE, (8, 8, 3)), "long": Column("long", shape=(5000,))}
    assert dimensions_of(["image"], columns) is None
    assert dimensions_of(["long"], columns) is None


def test_what_is_not_used_says_why():
    columns = [Column("a"), Column("b", words="float"), Column("c", why="it is text")]
    unused = find_unused(columns, {"observation": ["a"]})
    assert [(each.name, each.why) for each in unused] == [
        ("b", "no field has such a name; name it with a flag to use it"),
        ("c", "it is text"),
    ]
