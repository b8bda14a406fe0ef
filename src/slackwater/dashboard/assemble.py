"""The page: HTML, style, scripts and the chart library in one response, with its policy.

>>> html, policy = page()
>>> b"uPlot" in html, "default-src 'none'" in policy
(True, True)
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

_SCRIPTS = (  # a script uses only those before it
    "format.js", "store.js", "theme.js", "charts.js", "series.js", "drawings.js", "aggregates.js",
    "control.js", "timeline.js", "app.js",
)  # fmt: skip


@cache
def page() -> tuple[bytes, str]:
    """Return the page and its Content-Security-Policy."""
    chart_library = _text("vendor/uPlot.iife.min.js")
    own = "(() => {\n'use strict';\n" + "\n".join(map(_text, _SCRIPTS)) + "\n})();\n"
    html = _text("index.html")
    for place, content in {
        "/* style */": _text("vendor/uPlot.min.css") + "\n" + _text("style.css"),
        "/* charts */": chart_library,
        "/* page */": own,
    }.items():
        html = html.replace(place, content)
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in (chart_library, own))
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {hashes}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return html.encode(), policy


def _text(name: str) -> str:
    return files("slackwater.dashboard").joinpath("page", name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return b64encode(sha256(script.encode()).digest()).decode()
