"""The live dashboard: one page and its small server, with the standard library only.

>>> from slackwater.dashboard.history import History
>>> from slackwater.dashboard.server import Dashboard
>>> history = History()
>>> with Dashboard(history) as dashboard:
...     history.take({"event": "started", "id": "q1", "run_id": "r1", "name": "matches"})
...     dashboard.url.startswith("http://127.0.0.1:")
True
"""
