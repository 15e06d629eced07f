"""What is kept is what was made; a damaged file is made anew."""

from __future__ import annotations

from tacit.experiments.pointcloud.data.cache import cache_folder, cached


def test_a_damaged_file_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path))
    made = []

    def make():
        made.append(1)
        return {"x": len(made)}

    assert cached([], (1,), make) == {"x": 1} == cached([], (1,), make)
    (path,) = cache_folder().iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    assert cached([], (1,), make) == {"x": 2} == cached([], (1,), make)
    assert cached([], (2,), make) == {"x": 3}
