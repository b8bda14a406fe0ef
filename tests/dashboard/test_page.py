"""The page in a real browser: what it shows, what it asks, and who can use it."""

import json
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.dashboard.history import History
from slackwater.dashboard.server import Dashboard
from slackwater.engine.replay_lines import lines
from synthetic_run import aggregate_lines, ended, join_lines

pytestmark = pytest.mark.xdist_group("browser")

JOINED = {"recall", "control", "slack", "curve", "delays", "leads", "rates", "late", "state"}
JOINED |= {"accounting"}

# the pixels of a chart, as a sum that changes when it is drawn anew
INK = """
const canvas = document.querySelector(`[data-panel="${arguments[0]}"] canvas`);
const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
let sum = 0;
for (let n = 3; n < data.length; n += 4) sum = (sum * 31 + data[n]) % 1000003;
return sum;
"""


def served(*runs, **options):
    history = History()
    for run in runs:
        for line in run:
            history.take(line)
    return Dashboard(history, **options)


def requests(window):
    """The addresses that the page requested."""
    events = [json.loads(e["message"])["message"] for e in window.driver.get_log("performance")]
    sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    own = [params for params in sent if not params["documentURL"].startswith("chrome")]  # new tab
    return [params["request"]["url"] for params in own]


def test_nothing_leaves_the_origin_and_nothing_goes_wrong(window, live):
    window.open(live.url)
    live.more(3)
    window.wait("document.getElementById('moment').max === '91'").everything_shown()
    requested = [url for url in requests(window) if not url.startswith("data:")]
    assert {urlsplit(url).path for url in requested} == {"/", "/lines.json", "/events"}
    assert {urlsplit(url).netloc for url in requested} == {urlsplit(live.url).netloc}
    assert window.driver.get_log("browser") == []


def test_every_chart_of_a_join_is_there(window, finished):
    window.open(finished)
    assert window.visible() == JOINED | {"throttle", "harvest"}
    assert window.text("status").strip() == "ended"
    assert "in time; the target is 99 %" in window.text("lede")


def test_charts_move_as_lines_arrive(window, live):
    window.open(live.url).everything_shown()
    charts = ("recall", "slack", "rates", "late", "state")
    before = {name: window.js(INK, name) for name in charts}
    drawn = window.js("return document.querySelector('[data-panel=curve] svg').outerHTML")
    arrivals = window.text("tiles")
    live.more(10)
    window.wait("document.getElementById('moment').max === '98'").settled()
    assert all(window.js(INK, name) != before[name] for name in charts)
    assert window.js("return document.querySelector('[data-panel=curve] svg').outerHTML") != drawn
    assert window.text("tiles") != arrivals


SHOWN = """
const text = id => document.getElementById(id).innerText;
const drawn = [...document.querySelectorAll('.drawing, .u-legend')].map(e => e.innerHTML);
return [text('lede'), text('tiles'), text('moment-text'), text('changes'), ...drawn];
"""


@pytest.mark.full
def test_lines_that_came_live_look_like_those_of_a_page_that_is_loaded_anew(window, live):
    window.open(live.url).everything_shown()
    live.more(40)
    window.wait("document.getElementById('moment').max === '128'").settled()
    came = window.js(SHOWN)
    loaded = window.open(live.url).everything_shown().js(SHOWN)
    assert len(came) > 10
    assert came == loaded


def test_a_new_target_is_sent_taken_and_marked(window, live):
    window.open(live.url)
    window.type("recall-number", "99")
    assert window.js("return document.getElementById('recall-slider').value") == "99"
    assert window.text("expect").startswith("About ")
    window.driver.find_element("id", "apply").click()
    window.wait("document.getElementById('command-status').textContent.startsWith('Sent 99 %')")
    (file,) = live.control.iterdir()
    assert json.loads(file.read_text()) == {"set": {"recall": 0.99}}
    taken = live.more(30)  # the run takes it in one of these
    batch = next(line["batch"] for line in taken if line["metrics"]["commands"])
    window.wait("document.querySelectorAll('#changes li').length === 1")
    assert window.text("command-status") == f"99 % since batch {batch}."
    assert window.text("changes").startswith(f"recall 95 % → 99 %batch {batch} · ")


@pytest.mark.full
def test_a_change_that_somebody_else_made_is_announced_and_the_slider_follows(window, live):
    window.open(live.url)
    taken = live.more(30)
    batch = next(line["batch"] for line in taken if line["metrics"]["commands"])
    window.wait("document.getElementById('command-status').textContent !== ''")
    assert window.text("command-status") == f"recall 95 % → 99 % at batch {batch}."
    window.wait("document.getElementById('recall-slider').value === '99'")


@pytest.mark.full
def test_what_the_server_refuses_is_shown(window, live):
    window.open(live.url)
    window.type("recall-number", "120")
    window.driver.find_element("id", "apply").click()
    assert window.text("command-status") == "The target must be above 0 and at most 100 %."
    assert not live.control.exists()


@pytest.mark.full
def test_a_run_that_cannot_be_commanded_says_why(window):
    with served(join_lines(5), no_control="Start it with a control directory.") as dashboard:
        window.open(dashboard.url)
        assert window.text("no-control") == "Start it with a control directory."
        assert window.js("return document.getElementById('control').hidden") is True


@pytest.mark.full
def test_lines_without_drawings_leave_cards_out(window):
    lines = [line | {} for line in join_lines(5)]
    for line in lines[1:]:
        line["metrics"] = {
            k: v for k, v in line["metrics"].items() if k not in ("charts", "commands")
        }
    del lines[0]["query"]
    with served(lines) as dashboard:
        window.open(dashboard.url)
        assert window.visible() == JOINED - {"curve", "delays", "leads"}
        assert "of the results so far were in time; the target is 95 %" in window.text("lede")
        assert window.driver.get_log("browser") == []


@pytest.mark.full
def test_lines_without_metrics_are_no_error(window):
    line = {"event": "batch", "id": "x", "name": None, "batch": 0, "rows": 7, "metrics": None}
    with served([line, line | {"batch": 1}]) as dashboard:
        window.open(dashboard.url)
        assert window.visible() == {"control"}
        assert window.text("lede") == "7 rows in this micro-batch."
        assert window.driver.get_log("browser") == []


@pytest.mark.full
def test_early_answers_and_several_queries(window):
    with served(join_lines(20), aggregate_lines(120)) as dashboard:
        window.open(dashboard.url)
        assert window.text("queries") == "matchesearly answers"
        choose = "const s = document.getElementById('queries'); s.value = 'b';"
        window.js(choose + "s.dispatchEvent(new Event('change'))")
        window.wait("!document.querySelector('[data-panel=early]').hidden").everything_shown()
        legend = "return document.querySelector('[data-panel=early] .u-legend').innerText"
        legend = window.js(legend)
        assert {"high", "low", "observed", "matches", "exact"} <= set(legend.split())
        assert window.text("lede").startswith("The last early matches: ")


def test_a_finished_run_can_be_gone_through(window, finished):
    window.open(finished)
    last = window.text("moment-text")
    assert last.endswith("batch 119")
    window.js(
        "const s = document.getElementById('moment'); s.value = 30;"
        "s.dispatchEvent(new Event('input'))"
    )
    window.wait("document.getElementById('moment-text').textContent.endsWith('batch 30')")
    assert "the target is 95 %" in window.text("lede")
    assert window.js("return document.querySelectorAll('#changes li').length") == 0
    assert "harvest" not in window.visible()
    window.driver.find_element("id", "follow").click()
    window.wait(f"document.getElementById('moment-text').textContent === '{last}'")
    assert "the target is 99 %" in window.text("lede")


@pytest.mark.full
def test_play_goes_on_by_itself_and_can_be_halted(window, finished):
    window.open(finished)
    window.driver.find_element("id", "play").click()
    window.wait("Number(document.getElementById('moment').value) < 60")
    window.wait("Number(document.getElementById('moment').value) > 5")
    window.driver.find_element("id", "play").click()
    window.wait("document.getElementById('play').ariaPressed === 'false'")
    halted = window.text("moment-text")
    assert window.settled().text("moment-text") == halted


@pytest.mark.full
def test_a_page_that_looks_back_stays_there_while_lines_come(window, live):
    window.open(live.url)
    window.js(
        "const s = document.getElementById('moment'); s.value = 40;"
        "s.dispatchEvent(new Event('input'))"
    )
    live.more(5)
    window.wait("document.getElementById('moment').max === '93'")
    assert window.js("return document.getElementById('moment').value") == "40"


@pytest.mark.full
def test_explanations_open_and_close(window, finished):
    window.open(finished)
    button = window.driver.find_element("css selector", "[data-panel=slack] .help")
    why = window.driver.find_element("css selector", "[data-panel=slack] .why")
    assert not why.is_displayed()
    button.click()
    assert why.is_displayed() and "Slack, K, is how long" in why.text
    assert button.get_attribute("aria-expanded") == "true"
    missing = "[...document.querySelectorAll('.card')].filter(c => !c.querySelector('.why'))"
    assert window.js(f"return {missing}.length") == 0


@pytest.mark.full
def test_a_token_opens_the_page_and_leaves_the_address(window):
    with served(join_lines(5), token="a-token-for-the-tests") as dashboard:
        window.open(dashboard.url)
        assert window.js("return location.search") == ""
        assert window.js("return document.cookie") == ""  # scripts do not see it
        window.open(dashboard.url.partition("?")[0])  # the browser remembers


@pytest.mark.full
def test_a_page_finds_a_server_that_was_started_anew(window):
    with served(join_lines(5)) as first:
        window.open(first.url)
        port = urlsplit(first.url).port
    window.wait("document.getElementById('status').dataset.is === 'lost'")
    with served(join_lines(30), port=port):
        window.wait("document.getElementById('moment').max === '29'")
        window.wait("document.getElementById('status').dataset.is === 'live'")


@pytest.mark.full
def test_a_micro_batch_without_metrics_leaves_everything_as_it_was(window, live):
    window.open(live.url)
    before, shown = window.text("lede"), window.visible()
    live.history.take({"event": "batch", "id": "a", "batch": 999, "rows": 0, "metrics": None})
    window.wait("document.getElementById('moment-text').textContent.endsWith('999')").settled()
    assert (window.text("lede"), window.visible()) == (before, shown)


def test_at_a_flush_the_late_share_is_of_the_events_that_are_judged_then(window):
    lines = [json.loads(json.dumps(line)) for line in join_lines(9)]
    before = lines[-8]
    for line in lines[-7:]:  # nothing more comes, until those that waited are judged
        line["metrics"] = json.loads(json.dumps(before["metrics"]))
    flush = lines[-1]["metrics"]["streams"].values()
    for stream in flush:
        stream["arrivals"] += 1
        stream["in_order"] += 194
        stream["late_kept"] += 6
    with served(lines) as dashboard:
        window.open(dashboard.url).everything_shown()
        shown = window.js("return document.querySelector('[data-panel=late] .u-legend').innerText")
    assert shown.split("\n")[1::2] == ["3 %"] * len(flush), shown


# ---- for everybody


@pytest.mark.full
@pytest.mark.parametrize("width", [360, 768, 1024, 1440, 1920])
def test_nothing_is_wider_than_the_page(window, finished, width):
    window.sized(width, 800).open(finished).everything_shown()
    assert window.js("return document.documentElement.scrollWidth") == width


# the contrast of every text on the page, by WCAG 2; transparent parents are looked through
CONTRAST = """
const luminance = ([r, g, b]) => {
  const part = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const parse = text => {
  const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
  return {rgb: [r, g, b], a};
};
const ground = node => {
  for (let n = node; n; n = n.parentElement) {
    const {rgb, a} = parse(getComputedStyle(n).backgroundColor);
    if (a === 1) return rgb;
  }
  return [255, 255, 255];
};
const bad = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let seen = 0;
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement, style = getComputedStyle(node);
  if (!walker.currentNode.textContent.trim() || !node.checkVisibility()) continue;
  if (['SCRIPT', 'STYLE', 'TITLE', 'title'].includes(node.tagName) || node.closest('.sr')) continue;
  const ink = parse(node instanceof SVGElement ? style.fill : style.color).rgb;
  const [high, low] = [luminance(ink), luminance(ground(node))].sort((a, b) => b - a);
  const ratio = (high + 0.05) / (low + 0.05), px = parseFloat(style.fontSize);
  const isLarge = px >= 24 || (px >= 18.66 && Number(style.fontWeight) >= 700);
  seen += 1;
  const text = walker.currentNode.textContent;
  if (ratio < (isLarge ? 3 : 4.5)) bad.push(`${ratio.toFixed(2)} ${text}`);
}
return {seen, bad};
"""


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(window, live, finished, scheme):
    for url in (live.url, finished):
        window.coloured(scheme).sized(1440, 900).open(url).everything_shown()
        window.js("document.querySelectorAll('.help').forEach(button => button.click())")
        found = window.settled().js(CONTRAST)
        assert found["seen"] > 100
        assert found["bad"] == []
    ground = window.js("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(12, 18, 23)") == (scheme == "dark")


@pytest.mark.full
def test_the_theme_can_be_chosen(window, finished):
    window.open(finished)
    window.driver.find_element("id", "theme").click()
    window.driver.find_element("id", "theme").click()
    assert window.text("theme") == "Theme: dark"
    window.open(finished)
    assert window.js("return document.documentElement.dataset.theme") == "dark"
    window.driver.find_element("id", "theme").click()
    assert window.text("theme") == "Theme: auto"


@pytest.mark.full
def test_the_keyboard_reaches_everything(window, live):
    from selenium.webdriver.common.keys import Keys

    window.open(live.url)
    reached = []
    for _ in range(60):
        window.keys(Keys.TAB)
        reached.append(
            window.js("return document.activeElement.id || document.activeElement.className")
        )
        outline = window.js("return getComputedStyle(document.activeElement).outlineStyle")
        if reached[-1] == "follow":
            break
        assert outline != "none", reached[-1]
    order = ["skip", "theme", "recall-slider", "recall-number", "apply", "play", "moment", "follow"]
    assert [name for name in reached if name in order] == order


@pytest.mark.full
def test_the_keyboard_changes_the_target(window, live):
    from selenium.webdriver.common.keys import Keys

    window.open(live.url)
    window.js("document.getElementById('recall-slider').focus()")
    window.keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert window.js("return document.getElementById('recall-number').value") == "95.2"
    window.keys(Keys.TAB, Keys.ENTER)
    window.wait("document.getElementById('command-status').textContent.startsWith('Sent 95.2 %')")
    assert [json.loads(file.read_text()) for file in live.control.iterdir()] == [
        {"set": {"recall": 0.952}}
    ]


@pytest.mark.full
def test_every_control_has_a_name_and_changes_are_announced(window, live):
    window.open(live.url)
    unnamed = window.js(
        "return [...document.querySelectorAll('button, input, select')]"
        ".filter(e => !(e.ariaLabel || e.textContent.trim() || e.labels?.length)).map(e => e.id)"
    )
    assert unnamed == []
    assert window.js("return document.getElementById('command-status').ariaLive") == "polite"


# ---- an hour


def busy_ms(window, script, frames):
    """What a frame takes of the page's own thread: time on the processor, not on the clock."""
    window.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})

    def spent():
        metrics = window.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return 1000 * next(m["value"] for m in metrics if m["name"] == "TaskDuration")

    before = spent()
    window.driver.execute_async_script(script, frames)
    return (spent() - before) / frames


@pytest.mark.full
def test_an_hour_scrolls_smoothly(window):
    run = join_lines(3600, targets={1800: 0.99}, shed_from=3000)
    with served(run, [ended()], is_live=False) as dashboard:
        window.open(dashboard.url)
        entries = json.loads(
            window.js("return JSON.stringify(performance.getEntriesByType('resource'))")
        )
        size = sum(entry["encodedBodySize"] for entry in entries)
        scrolling = busy_ms(
            window,
            """
            const [frames, done] = arguments;
            let n = 0;
            const step = () => {
              scrollBy(0, 12);
              if (++n < frames) requestAnimationFrame(step);
              else done();
            };
            requestAnimationFrame(step);
            """,
            frames=150,
        )
        dragging = busy_ms(
            window,
            """
            const [frames, done] = arguments, slider = document.getElementById('moment');
            let n = 0;
            const step = () => {
              slider.value = String(1000 + 20 * ++n);
              slider.dispatchEvent(new Event('input'));
              if (n < frames) requestAnimationFrame(step);
              else done();
            };
            requestAnimationFrame(step);
            """,
            frames=60,
        )
    print(  # noqa: T201  the figures are the point
        f"\none hour: {size:,} bytes of data; a frame takes {scrolling:.1f} ms while scrolling, "
        f"{dragging:.1f} ms while the moment is dragged"
    )
    assert 0 < size < 5_000_000
    assert 0 < scrolling < 50
    assert 0 < dragging < 200


@pytest.mark.parametrize("how", ["left", "asof"])
def test_decided_rows_have_their_share_of_right_ones(window, how):
    rng = np.random.default_rng(2)
    tables = {}
    for name in "ab":
        at = np.sort(rng.integers(0, 40_000, 2_000))
        ts = at - np.minimum(rng.exponential(100, 2_000), at).astype(np.int64)
        tables[name] = pa.table({"ts": ts, "k": rng.integers(0, 50, 2_000), "at": at})
    is_asof = how == "asof"
    goal = sw.Recall(0.9, over="5 seconds", unmatched=None if is_asof else 0.9)
    streams = (sw.Stream(name, "ts", None if is_asof else 500) for name in "ab")
    tolerance = 500 if is_asof else None
    query = sw.join(*streams, on="k", how=how, emit="eager", goal=goal, tolerance=tolerance)
    shown = list(lines(query, tables, "at", 200))
    with served(shown) as dashboard:
        window.open(dashboard.url)
        tiles = window.text("tiles")
        assert "Right rows" in tiles
        assert "Taken back" in tiles
        assert "target 90 %" in tiles
        assert "of the rows that had to be decided were right so far; the target is 90 %." in (
            window.text("lede")
        )
        assert "recall" in window.visible()
        assert window.driver.get_log("browser") == []
