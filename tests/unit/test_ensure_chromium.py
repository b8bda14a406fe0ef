import pytest

import ensure_chromium


@pytest.mark.parametrize(
    ("places", "may", "works", "said"),
    [
        ([("b", "d")], False, False, "chromium: b, driven by d"),
        ([None, ("b", "d")], True, True, "chromium: installed b, driven by d"),
        ([None, None], True, False, "will be skipped"),
        ([None], False, False, "will be skipped"),
    ],
)
def test_a_browser_is_found_or_brought_or_done_without(
    monkeypatch, capsys, places, may, works, said
):
    waiting = iter(places)
    monkeypatch.setattr(ensure_chromium, "found", lambda: next(waiting))
    monkeypatch.setattr(ensure_chromium, "may_install", lambda: may)
    monkeypatch.setattr(ensure_chromium, "install", lambda: works)
    assert ensure_chromium.main() == 0
    assert said in capsys.readouterr().out
