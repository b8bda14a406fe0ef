"""Pictures of the dashboard for the documentation: light, dark and as a phone shows it.

``python tools/dashboard_pictures.py [METRICS.jsonl]`` shows the first query of a metrics log, or a
replay of made-up streams, in a headless Chromium, and writes ``docs/images/dashboard-*.png``.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from io import BytesIO
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

import slackwater as sw
from slackwater.dashboard.control import Control
from slackwater.dashboard.follow import LogFile
from slackwater.dashboard.history import History
from slackwater.dashboard.server import Dashboard
from slackwater.engine.replay_lines import lines

START = 1_767_603_600_000  # 2026-01-05 09:00 UTC
IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
SECONDS, RATE, SEED = 900, 150, 1
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --hide-scrollbars"
)
SHOTS = (  # name, colours, how far the run is, (width, height, 0: all, pixels per CSS pixel)
    ("light", "light", 0.88, (1280, 1060, 1.25)),
    ("dark", "dark", 1.0, (1280, 0, 1.25)),
    ("phone", "light", 0.88, (390, 1340, 1.5)),
)


def stream(rng: np.random.Generator, behind_ms: int) -> pa.Table:
    """Prices of what is traded now, a fifth late; later for a while, and more rows at the end."""
    rates = np.where(np.arange(SECONDS) < 0.9 * SECONDS, RATE, 2 * RATE)
    ts = np.concatenate([1000 * s + np.sort(rng.integers(0, 1000, n)) for s, n in enumerate(rates)])
    slow = (ts > 380_000) & (ts < 600_000)
    delay = np.where(rng.random(len(ts)) < 0.2, rng.exponential(np.where(slow, 1600, 700)), 0)
    delay += behind_ms
    table = pa.table({
        "symbol": (ts // 40 + rng.geometric(0.02, len(ts))) % 200,
        "ts": pa.array(START + ts).cast(pa.timestamp("ms", "UTC")),
        "arrival": pa.array(START + ts + delay.astype(np.int64)).cast(pa.timestamp("ms", "UTC")),
    })  # fmt: skip
    return table.sort_by("arrival")


def replayed() -> Iterator[dict[str, Any]]:
    """A replay whose target is changed after three quarters, and which sheds at the end."""
    rng = np.random.default_rng(SEED)
    streams = [sw.Stream(name, ts="ts", window="2 seconds") for name in ("quotes", "trades")]
    goal, shed = sw.Recall(0.95, over="30 seconds"), sw.Harvest(budget=2_600.0)
    query = sw.join(*streams, on="symbol", goal=goal, shed=shed, retention="20 seconds")
    steps = count()

    def commands() -> list[dict[str, Any]]:
        return [{"recall": 0.99}] if next(steps) == 3 * SECONDS // 4 else []

    tables = {"quotes": stream(rng, 0), "trades": stream(rng, 180)}
    return lines(query, tables, "arrival", "1 s", name="matches", commands=commands)


def history_of(file: Path | None, share: float) -> History:
    """What the page shows: the beginning of a run."""
    history = History()
    played = list(islice(replayed(), SECONDS) if file is None else LogFile(file).lines())
    for line in played[: round(share * len(played))]:
        history.take(line)
    return history


def browser(profile: str) -> webdriver.Chrome:
    """A headless Chromium of its own."""
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def shoot(driver: webdriver.Chrome, url: str, scheme: str, size: tuple[int, int, float]) -> bytes:
    """The page as it looks with these colours and this size."""
    width, height, density = size
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    screen = {"width": width, "height": height or 900, "deviceScaleFactor": density}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen | {"mobile": False})
    driver.get(url)
    shown = "return !document.querySelector('.grid').hidden"
    WebDriverWait(driver, 20).until(lambda one: one.execute_script(shown))
    driver.set_script_timeout(10)
    driver.execute_async_script("setTimeout(arguments[0], 400)")  # until all cards are there
    for _ in range(0 if height else 2):  # cards that come into sight are drawn and may grow
        screen["height"] = driver.execute_script("return document.documentElement.scrollHeight")
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen | {"mobile": False})
        driver.execute_async_script("setTimeout(arguments[0], 600)")
    return driver.get_screenshot_as_png()


def write_small(png: bytes, file: Path) -> None:
    """Write a picture with 256 colours: enough for a page, and half of the bytes."""
    picture = Image.open(BytesIO(png)).convert("RGB")
    picture.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
        file, optimize=True
    )
    print(f"{file.name}: {file.stat().st_size:,} bytes")


def main() -> int:
    """Write the pictures. Return the exit status."""
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    IMAGES.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        driver = browser(profile)
        try:
            for name, scheme, share, size in SHOTS:
                history, control = history_of(file, share), Control(lambda settings: None)
                with Dashboard(history, control=control) as dashboard:
                    png = shoot(driver, dashboard.url, scheme, size)
                write_small(png, IMAGES / f"dashboard-{name}.png")
        finally:
            driver.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main())
