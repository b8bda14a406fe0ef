"""docs/api.md is what `tools/api_page.py` makes of the code, and leaves no public name out."""

import api_page
import slackwater


def test_the_page_is_current():
    assert api_page.PAGE.read_text(encoding="utf-8") == api_page.page(), (
        "docs/api.md is old: run .venv/bin/python tools/api_page.py"
    )


def test_every_public_name_is_on_the_page():
    shown = {name for names in api_page.CHAPTERS.values() for name in names}
    assert set(slackwater.__all__) <= shown
    assert {"MetricsLog", "lines", "exposition"} <= shown


def test_a_docstring_becomes_words_and_parameters():
    def shown(speed, colour: str = "red"):
        """Show it.

        Parameters
        ----------
        speed
            How ``fast``; the more,
            the faster.
        colour
            Of | what.
        """

    words, parameters = api_page.documented(shown)
    assert words == "Show it."
    assert parameters == [
        ("speed", "How ``fast``; the more, the faster."),
        ("colour", "Of | what."),
    ]
    assert api_page.table(parameters).splitlines()[2:] == [
        "| `speed` | How `fast`; the more, the faster. |",
        "| `colour` | Of \\| what. |",
    ]
    assert api_page.signature("shown", shown) == 'shown(speed, colour: str = "red")'
