"""A browser for the tests that look at pages: one for each process, shared by all its tests.

Skipped, with the reason, where there is no Chromium; `KXBOOK_BROWSER=required` turns that into a failure.
"""

import json
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from importlib.metadata import files

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # a process for each core
    os.environ.setdefault(name, "1")
sys.modules["rfc3987_syntax"] = None  # jsonschema goes without: its grammars take seconds to load

import pytest  # noqa: E402
from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402

BINARY, DRIVER = (
    shutil.which("chromium") or shutil.which("google-chrome"),
    shutil.which("chromedriver"),
)
FLAGS = "--headless=new --no-sandbox --disable-gpu --disable-background-networking --no-first-run --disable-quic --disable-sync --disable-component-update"


class Browser(webdriver.Chrome):
    "Chromium, as the tests use it."

    def look(self, address, width=1280, theme="light", height=900, scale=1):
        "Open a page at a width and in a theme; what earlier pages have logged is forgotten."
        self.turn(width, theme, height, scale)
        for log in ("browser", "performance"):
            self.get_log(log)
        self.get(address)

    def turn(self, width=1280, theme="light", height=900, scale=1):
        "Another width or theme, of the page that is open too: it is not loaded again."
        self.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600},
        )
        self.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": theme}]},
        )

    def asked(self):
        "Addresses that the page has asked for; a page that opens a dialogue fails."
        messages = [
            json.loads(entry["message"])["message"] for entry in self.get_log("performance")
        ]
        assert not [m for m in messages if m["method"] == "Page.javascriptDialogOpening"]
        return [
            m["params"]["request"]["url"]
            for m in messages
            if m["method"] == "Network.requestWillBeSent"
        ]

    def overflow(self):
        "By how many pixels the page is wider than the window."
        return self.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )

    def axe(self, *rules, without=()):
        "What axe-core calls serious or critical, by the rules named or by all but some: contrast, alternative texts, names of links and buttons, landmarks."
        self.execute_script(
            next(f.locate() for f in files("axe-core-python") if f.name == "axe.min.js").read_text(
                encoding="utf-8"
            )
        )
        self.set_script_timeout(400)  # the longest pages take a minute
        # a page within the page is looked at on its own; axe would wait for an answer from it
        options = {"resultTypes": ["violations"], "iframes": False}
        options |= {"runOnly": rules} if rules else {}
        options["rules"] = {rule: {"enabled": False} for rule in without}
        found = self.execute_async_script(
            "const [options, done] = arguments; axe.run(document, options).then(r => done(r.violations))",
            options,
        )
        nodes = [
            (v["id"], node)
            for v in found
            if v["impact"] in ("serious", "critical")
            for node in v["nodes"]
        ]
        return [
            f"{rule}: {node['target']} {node['html'][:120]} {node['any'][:1] and node['any'][0]['message']}"
            for rule, node in nodes
        ]


@contextmanager
def chromium():
    "A browser with a profile and a port of its own."
    options = webdriver.ChromeOptions()
    options.binary_location = BINARY
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in [*FLAGS.split(), f"--user-data-dir={profile}"]:
            options.add_argument(flag)
        browser = Browser(options=options, service=Service(DRIVER))
        # the longest pages take axe more than selenium's two minutes where cores are shared
        browser.command_executor.client_config.timeout = 600
        try:
            yield browser
        finally:
            browser.quit()


def pytest_xdist_auto_num_workers(config):
    "One process more than there are cores: some tests wait, for files or for other processes."
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def browser():
    if not (BINARY and DRIVER):
        said = "no browser: install chromium and chromedriver (Debian: chromium, chromium-driver)"
        (pytest.fail if os.environ.get("KXBOOK_BROWSER") == "required" else pytest.skip)(said)
    with chromium() as browser:
        yield browser
