"""What the server answers, and whom it refuses; without a browser."""

import json
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from patience import PATIENCE_S
from slackwater.dashboard.control import CommandFiles, Control
from slackwater.dashboard.history import History
from slackwater.dashboard.server import MOST_BYTES, Dashboard
from slackwater.errors import DataError, QueryError
from synthetic_run import join_lines

TOKEN = "a-token-for-the-tests"


class Client:
    def __init__(self, url):
        address = urlsplit(url)
        self.host, self.port = address.hostname, address.port
        self.name = f"{address.hostname}:{address.port}"

    def ask(self, method, path, body=None, **headers):
        connection = HTTPConnection(self.host, self.port, timeout=PATIENCE_S)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer.headers
        finally:
            connection.close()

    def control(self, body, **headers):
        own = {"Origin": f"http://{self.name}", "Content_Type": "application/json"} | headers
        sent = json.dumps(body) if not isinstance(body, str) else body
        return self.ask("POST", "/control", sent, **{k: v for k, v in own.items() if v is not None})

    def events(self, path="/events", count=1, **headers):
        """So many events of a stream, as (id, data)."""
        connection = HTTPConnection(self.host, self.port, timeout=PATIENCE_S)
        connection.request(
            "GET", path, headers={n.replace("_", "-"): v for n, v in headers.items()}
        )
        answer, found, event = connection.getresponse(), [], {}
        while len(found) < count:
            line = answer.readline().decode().rstrip("\n")
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
            elif "data" in event:
                found.append((event["event"], event.get("id"), json.loads(event["data"])))
                event = {}
        connection.close()
        return found


@pytest.fixture
def history():
    history = History()
    for line in join_lines(5):
        history.take(line)
    return history


@pytest.fixture
def asked():
    return []


@pytest.fixture
def client(history, asked):
    with Dashboard(history, control=Control(asked.append)) as dashboard:
        yield Client(dashboard.url)


def test_the_page_is_one_response_that_may_load_nothing_else(client):
    status, html, headers = client.ask("GET", "/")
    policy = headers["Content-Security-Policy"]
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert "connect-src 'self'; img-src data:" in policy
    assert "<script src" not in html and '<link rel="stylesheet' not in html
    assert "/* page */" not in html


def test_what_is_known_comes_with_the_number_of_its_last_line(client):
    status, text, _ = client.ask("GET", "/lines.json")
    known = json.loads(text)
    assert (status, known["last"], known["live"]) == (200, 6, True)
    assert known["control"]["can"] is True


def test_events_go_on_behind_the_last_one_that_was_seen(client, history):
    resumed = client.events(Last_Event_ID="4", count=2)
    assert [(kind, number[8:]) for kind, number, _ in resumed] == [("line", "-5"), ("line", "-6")]
    assert resumed[-1][2]["batch"] == 4
    filled = client.events("/events?after=0", count=6)
    assert [line["event"] for _, _, line in filled] == ["started"] + ["batch"] * 5
    assert client.events("/events?after=99") == [("reset", None, {})]
    own = resumed[-1][1].partition("-")[0]
    assert client.events(Last_Event_ID=f"{own}-5")[0][2]["batch"] == 4
    assert client.events(Last_Event_ID="another1-5") == [("reset", None, {})]


def test_a_new_line_reaches_who_waits(client, history):
    connection = HTTPConnection(client.host, client.port, timeout=PATIENCE_S)
    connection.request("GET", "/events?after=6")
    answer = connection.getresponse()
    assert answer.readline() == b"retry: 1000\n"
    history.take({"event": "batch", "id": "a", "batch": 99})
    told = [answer.readline() for _ in range(5)]
    connection.close()
    assert told[1].startswith(b"id: ") and told[1].endswith(b"-7\n")
    assert told[2:4] == [b"event: line\n", b'data: {"event":"batch","id":"a","batch":99}\n']


def test_closing_ends_the_streams_of_events(history):
    with Dashboard(history) as dashboard:
        client = Client(dashboard.url)
        connection = HTTPConnection(client.host, client.port, timeout=PATIENCE_S)
        connection.request("GET", "/events?after=6")
        answer = connection.getresponse()
        answer.readline()
    assert b"data" not in answer.read()
    connection.close()


def test_a_target_is_handed_on(client, asked):
    assert client.control({"recall": 0.99})[0] == 202
    assert client.control({"slack": "1 s"})[:2] == (202, '{"asked": {"slack": "1 s"}}')
    assert asked == [{"recall": 0.99}, {"slack": "1 s"}]


REFUSED = {
    "another origin": ({"Origin": "http://example.org"}, {"recall": 0.99}, 403, "only the page"),
    "no origin": ({"Origin": None}, {"recall": 0.99}, 403, "only the page"),
    "another port": ({"Origin": "http://127.0.0.1:1"}, {"recall": 0.99}, 403, "only the page"),
    "a site": ({"Sec_Fetch_Site": "cross-site"}, {"recall": 0.99}, 403, "only the page"),
    "a form": ({"Content_Type": "text/plain"}, {"recall": 0.99}, 415, "application/json"),
    "no JSON": ({}, "recall=0.99", 400, "must be a JSON object"),
    "a list": ({}, [0.99], 400, "must be like"),
    "nothing": ({}, {}, 400, "must be like"),
    "both": ({}, {"recall": 0.9, "slack": 1}, 400, "must be like"),
    "something else": ({}, {"flush": True}, 400, "must be like"),
    "too much": ({}, {"recall": "9" * MOST_BYTES}, 413, "at most 1000 bytes"),
    "zero": ({}, {"recall": 0}, 400, "recall must be a number above 0 and at most 1, got 0"),
    "percent": ({}, {"recall": 99}, 400, "recall must be a number above 0 and at most 1, got 99"),
    "text": ({}, {"recall": "0.99"}, 400, "recall must be a number"),
    "true": ({}, {"recall": True}, 400, "recall must be a number"),
    "not a number": ({}, '{"recall": NaN}', 400, "recall must be a number"),
    "no time": ({}, {"slack": "soon"}, 400, "slack must be like '5 seconds'"),
    "before now": ({}, {"slack": -5}, 400, "slack must be >= 0"),
}


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_bad_requests_are_refused_in_one_line(client, asked, case):
    headers, body, status, reason = REFUSED[case]
    got, text, _ = client.control(body, **headers)
    assert (got, text.count("\n")) == (status, 1)
    assert reason in text
    assert asked == []


@pytest.mark.parametrize("path", ["/", "/lines.json", "/events", "/metrics"])
def test_a_request_for_another_name_is_refused(client, path):
    status, text, _ = client.ask("GET", path, Host=f"example.org:{client.port}")
    assert (status, text) == (421, f"this server is not example.org:{client.port}\n")
    assert client.ask("GET", path, Host="127.0.0.1:1")[0] == 421


def test_localhost_is_a_name_of_a_server_on_the_loopback(client):
    assert client.ask("GET", "/", Host=f"localhost:{client.port}")[0] == 200
    own = f"localhost:{client.port}"
    assert client.control({"recall": 0.9}, Host=own, Origin=f"http://{own}")[0] == 202


def test_what_is_not_there_is_refused(client):
    assert client.ask("GET", "/etc/passwd")[:2] == (404, "there is nothing at /etc/passwd\n")
    assert client.ask("POST", "/lines.json")[0] == 404
    assert client.ask("DELETE", "/control")[0] == 501
    assert client.ask("GET", "/events?after=x")[0] == 400


def test_a_run_that_cannot_be_commanded_says_so(history):
    with Dashboard(history, no_control="Give the job a control directory.") as dashboard:
        client = Client(dashboard.url)
        answer = client.control({"recall": 0.99})
        assert answer[:2] == (409, "Give the job a control directory.\n")
        assert client.ask("GET", "/metrics")[0] == 404


def test_what_the_caller_refuses_is_told(history):
    def send(settings):
        msg = "no recall here"
        raise DataError(msg)

    with Dashboard(history, control=Control(send)) as dashboard:
        assert Client(dashboard.url).control({"recall": 0.9})[:2] == (400, "no recall here\n")


def test_metrics_are_what_the_caller_makes_of_the_last_lines(history):
    def exposition(lines):
        return "".join(f"{name} {line['metrics']['target']}\n" for name, line in lines.items())

    with Dashboard(history, exposition=exposition) as dashboard:
        status, text, headers = Client(dashboard.url).ask("GET", "/metrics")
    assert (status, text) == (200, "matches 0.95\n")
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")


# ---- tokens


@pytest.fixture
def guarded(history, asked):
    with Dashboard(history, token=TOKEN, control=Control(asked.append)) as dashboard:
        yield Client(dashboard.url)


@pytest.mark.parametrize("path", ["/", "/lines.json", "/events", "/?token=wrong", "/metrics"])
def test_without_the_token_nothing_is_told(guarded, path):
    status, text, _ = guarded.ask("GET", path)
    assert (status, text.count("\n")) == (401, 1)
    assert guarded.ask("GET", path, Authorization="Bearer wrong")[0] == 401
    assert guarded.ask("GET", path, Cookie=f"slackwater_{guarded.port}=wrong")[0] == 401


def test_the_token_becomes_a_cookie(guarded, asked):
    status, _, headers = guarded.ask("GET", f"/?token={TOKEN}")
    cookie = headers["Set-Cookie"]
    assert status == 200
    assert cookie == f"slackwater_{guarded.port}={TOKEN}; HttpOnly; SameSite=Strict; Path=/"
    own = cookie.partition(";")[0]
    assert guarded.ask("GET", "/lines.json", Cookie=own)[0] == 200
    assert guarded.control({"recall": 0.9}, Cookie=own)[0] == 202
    assert guarded.control({"recall": 0.9}, Cookie=own, Origin="http://example.org")[0] == 403
    assert guarded.control({"recall": 0.9})[0] == 401
    assert asked == [{"recall": 0.9}]


def test_a_program_sends_the_token_in_a_header(guarded, asked):
    bearer = f"Bearer {TOKEN}"
    assert guarded.ask("GET", "/lines.json", Authorization=bearer)[0] == 200
    assert guarded.control({"recall": 0.9}, Authorization=bearer, Origin=None)[0] == 202


def test_a_server_that_others_can_reach_makes_up_a_token(history):
    with Dashboard(history, host="0.0.0.0") as one, Dashboard(history, host="0.0.0.0") as other:
        address = urlsplit(one.url)
        assert address.query.startswith("token=")
        assert len(address.query) > 20
        assert address.query != urlsplit(other.url).query
        local = Client(f"http://127.0.0.1:{address.port}")
        assert local.ask("GET", "/lines.json")[0] == 401
        assert local.ask("GET", f"/?{address.query}")[0] == 200
        rebound = {"Host": f"example.org:{address.port}"}
        assert local.ask("GET", f"/?{address.query}", **rebound)[0] == 421


@pytest.mark.parametrize("token", ["", "short", "with;semicolon", "ümläute-and-more"])
def test_a_token_that_would_not_do_is_refused(history, token):
    with pytest.raises(QueryError, match="a token must have 8 or more letters"):
        Dashboard(history, token=token)


def test_a_port_that_is_taken_is_told(client, history):
    with pytest.raises(QueryError, match=f"cannot listen on 127.0.0.1 port {client.port}"):
        Dashboard(history, port=client.port)


# ---- commands in files


def test_commands_are_files_in_the_order_of_their_names(tmp_path):
    first = CommandFiles(tmp_path / "control")
    first.set({"recall": 0.9})
    first.set({"slack": "1 s"})
    CommandFiles(tmp_path / "control").write({"flush": True})  # another run goes on behind
    files = sorted((tmp_path / "control").iterdir())
    assert [file.name for file in files] == [f"page-0000000{n}.json" for n in (1, 2, 3)]
    assert [json.loads(file.read_text()) for file in files] == [
        {"set": {"recall": 0.9}},
        {"set": {"slack": "1 s"}},
        {"flush": True},
    ]


def test_a_directory_that_cannot_be_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="the command cannot be written into"):
        CommandFiles(tmp_path / "file" / "control").set({"recall": 0.9})
