"""Pictures of the dashboard for the documentation: light, dark and as a phone shows it.

``python tools/dashboard_pictures.py [METRICS.jsonl]`` shows the first query of a metrics log, or a
synthetic run, in a headless Chromium, and writes ``docs/images/dashboard-*.png``.
"""

from __future__ import annotations

import shutil
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from slackwater.dashboard.control import Control
from slackwater.dashboard.follow import LogFile
from slackwater.dashboard.history import History
from slackwater.dashboard.server import Dashboard
from synthetic_run import join_lines

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
LINES = 900
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --hide-scrollbars"
)
SHOTS = (  # name, colours, (width, height, 0: the whole page, pixels per CSS pixel)
    ("light", "light", (1280, 1060, 1.25)),
    ("dark", "dark", (1280, 0, 1.25)),
    ("phone", "light", (390, 1340, 1.5)),
)


def history_of(file: Path | None) -> History:
    """What the page shows."""
    history = History()
    targets = {LINES * 3 // 4: 0.99}
    lines: Any = join_lines(LINES, targets=targets, shed_from=LINES * 9 // 10)
    for line in lines if file is None else LogFile(file).lines():
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
    picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        file, optimize=True
    )
    print(f"{file.name}: {file.stat().st_size:,} bytes")


def main() -> int:
    """Write the pictures. Return the exit status."""
    history = history_of(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    IMAGES.mkdir(parents=True, exist_ok=True)
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        Dashboard(history, control=Control(lambda settings: None)) as dashboard,
    ):
        driver = browser(profile)
        try:
            for name, scheme, size in SHOTS:
                png = shoot(driver, dashboard.url, scheme, size)
                write_small(png, IMAGES / f"dashboard-{name}.png")
        finally:
            driver.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main())
