"""A browser for the tests of pages.

Needs Chromium and its driver.  Without them the tests are skipped, unless TESSELLA_BROWSER=required says that they must be there.
"""

import os

import pytest

from helpers.browsing import BROWSER, DRIVER, FLAGS


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not (BROWSER and DRIVER):
        if os.environ.get("TESSELLA_BROWSER") == "required":
            pytest.fail("Chromium and chromedriver must be there: TESSELLA_BROWSER=required")
        pytest.skip("Chromium and chromedriver are not installed (apt-get install chromium chromium-driver)")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield opened
    opened.quit()
