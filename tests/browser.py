"""A headless Chromium, driven by selenium: it opens pages from files, and tells what it complains of."""

import base64
import contextlib
import json
import shutil

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

MISSING = "no chromium with its chromedriver: scripts/install test brings Debian's; GDBEXT_NO_BROWSER=1 skips its tests"


@contextlib.contextmanager
def chromium():
    """One for many pages: it takes a second to start."""
    options = Options()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    driver = shutil.which("chromedriver")
    assert options.binary_location and driver, MISSING
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(word)
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield Pages(browser)
    finally:
        browser.quit()


class Pages:
    """One tab."""

    def __init__(self, browser):
        self.browser = browser
        self.devtools = browser.execute_cdp_cmd

    def open(self, path, width=1280, height=900, script=True, dark=False, fragment=""):
        """A file, in a window of that size."""
        self.devtools("Emulation.setScriptExecutionDisabled", {"value": not script})
        media = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.devtools("Emulation.setEmulatedMedia", {"media": "", "features": media})
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.devtools("Emulation.setDeviceMetricsOverride", size)
        self.browser.get("about:blank")
        self.browser.get_log("browser")
        self.browser.get_log("performance")
        self.browser.get(path.as_uri() + fragment)

    def complaints(self):
        """What the console was told since the page was opened."""
        return [one["message"] for one in self.browser.get_log("browser")]

    def run(self, script, *arguments):
        """What a script of ours returns."""
        return self.browser.execute_script(script, *arguments)

    def all(self, selector):
        return self.browser.find_elements("css selector", selector)

    def one(self, selector):
        return self.browser.find_element("css selector", selector)

    def picture(self, path, whole=False):
        """A PNG of what is seen, or of the whole page."""
        got = self.devtools(
            "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole, **self._clip(whole)}
        )
        path.write_bytes(base64.b64decode(got["data"]))

    def _clip(self, whole):
        if not whole:
            return {}
        size = self.devtools("Page.getLayoutMetrics", {})["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16000), "scale": 1}}

    def printed(self, path):
        """A PDF."""
        path.write_bytes(base64.b64decode(self.devtools("Page.printToPDF", {"printBackground": True})["data"]))

    def requests(self):
        """Addresses that were asked for since the page was opened."""
        told = (json.loads(one["message"])["message"] for one in self.browser.get_log("performance"))
        return [one["params"]["request"]["url"] for one in told if one["method"] == "Network.requestWillBeSent"]
