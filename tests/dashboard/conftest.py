"""A browser and a server for the tests of the page."""

import shutil
from tempfile import TemporaryDirectory

import pytest

from patience import PATIENCE_S
from slackwater.dashboard.control import CommandFiles, Control
from slackwater.dashboard.history import History
from slackwater.dashboard.server import Dashboard
from synthetic_run import ended, join_lines

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --hide-scrollbars"
)
SHORT = 90  # lines


@pytest.fixture(scope="session")
def chromium():
    """One headless Chromium for all tests of a worker; they are skipped where there is none."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no chromium with its chromedriver: see tools/ensure_chromium.py")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    with TemporaryDirectory(prefix="slackwater-chromium-", ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = browser
        for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        started = webdriver.Chrome(options=options, service=Service(driver))
        started.set_script_timeout(PATIENCE_S)
        yield started
        started.quit()


@pytest.fixture
def window(chromium):
    """A page of 1440 x 900 in light colours, whatever a test before made of it."""
    return Window(chromium).sized(1440, 900).coloured("light")


class Window:
    """What tests do with a page."""

    def __init__(self, driver):
        self.driver = driver

    def sized(self, width, height):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        return self

    def coloured(self, scheme, motion="no-preference"):
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": motion},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        return self

    def open(self, url, until=None):
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)  # those of the page before
        self.driver.get(url)
        return self.wait(until or "!document.querySelector('.grid').hidden")

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition):
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, PATIENCE_S, 0.05).until(
            lambda driver: driver.execute_script(f"return Boolean({condition})"),
            message=f"never: {condition}",
        )
        return self

    def text(self, element):
        return self.js("return document.getElementById(arguments[0]).textContent", element)

    def visible(self):
        """The cards that are shown."""
        found = "[...document.querySelectorAll('.card:not([hidden])')].map(c => c.dataset.panel)"
        return set(self.js(f"return {found}"))

    def everything_shown(self):
        """As high as the page: charts are drawn only where they are visible."""
        height = self.js("return document.documentElement.scrollHeight")
        width = self.js("return innerWidth")
        return self.sized(width, height + 50).settled()

    def settled(self):
        """Two frames later."""
        self.driver.execute_async_script(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 60)))"
        )
        return self

    def type(self, id, text):
        """Replace what is in a field, as a person does.

        The driver's own `clear` leaves the field afterwards, and the page may then fill it again.
        """
        from selenium.webdriver.common.keys import Keys

        field = self.driver.find_element("id", id)
        field.click()
        field.send_keys(Keys.CONTROL + "a")
        field.send_keys(text)

    def keys(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()
        return self


@pytest.fixture
def live(tmp_path):
    """A run of some lines that goes on, can be commanded, and what serves it."""
    history = History()
    lines = join_lines(SHORT + 200, targets={SHORT + 20: 0.99})
    for _, line in zip(range(SHORT), lines, strict=False):
        history.take(line)
    files = CommandFiles(tmp_path / "control")
    with Dashboard(history, control=Control(files.set, "matches")) as dashboard:
        yield Live(history, lines, dashboard.url, files.directory)


class Live:
    def __init__(self, history, lines, url, control):
        self.history, self.url, self.control = history, url, control
        self._lines = lines

    def more(self, count):
        """So many further lines."""
        taken = [next(self._lines) for _ in range(count)]
        for line in taken:
            self.history.take(line)
        return taken


@pytest.fixture
def finished():
    """A run that has ended, with a change of its target and a shortage of CPU."""
    history = History()
    for line in join_lines(120, targets={60: 0.99}, shed_from=90):
        history.take(line)
    history.take(ended())
    with Dashboard(history, is_live=False) as dashboard:
        yield dashboard.url
