"""What the package offers at its top."""

import everthread


def test_dir_shows_the_public_names_and_each_one_is_there() -> None:
    assert dir(everthread) == sorted(everthread.__all__)
    assert all(getattr(everthread, name) is not None for name in everthread.__all__)
