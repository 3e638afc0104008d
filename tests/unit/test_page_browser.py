"""The HTML page in a real browser: it works, with its script and without, and everybody can use it."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gdbext.analysis.progress.look_difference import difference
from gdbext.model.look_origin import Origin
from gdbext.model.snapshot_files.codec import dump_snapshot, load_snapshot
from gdbext.render import page_text
from tests import page_samples
from tests.bench.scale_child import job

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.version_info < (3, 9), reason="selenium is not for this Python"),
    pytest.mark.skipif(bool(os.environ.get("GDBEXT_NO_BROWSER")), reason="GDBEXT_NO_BROWSER is set"),
    pytest.mark.filterwarnings("ignore"),  # of selenium and what it needs
]
WIDTHS = (1280, 390)
SEEN = """
const box = arguments[0].getBoundingClientRect();
return box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight;
"""


@pytest.fixture(scope="module")
def pages():
    from tests.browser import chromium

    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Pages by name."""
    folder = tmp_path_factory.mktemp("pages")
    texts = {name: page_text(page_samples.page(getattr(page_samples, name)())) for name in ("classic", "locks", "slow")}
    texts["large"] = page_text(page_samples.page(load_snapshot(dump_snapshot(job(1024, 20)))))
    before = page_samples.classic()
    after = replace(before, processes=before.processes[:6])
    origins = Origin.of(before, ("10h.json",)), Origin.of(after, ("11h.json",))
    texts["difference"] = page_text(difference(before, after, origins))
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, "utf-8")
    return {name: folder / f"{name}.html" for name in texts}


def shown(pages, selector):
    return [one for one in pages.all(selector) if one.is_displayed()]


def write(pages, selector, text):
    pages.one(selector).clear()
    pages.one(selector).send_keys(text)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["classic", "locks", "slow", "large", "difference"])
def test_it_opens_without_a_complaint_and_fits(pages, files, name, width):
    pages.open(files[name], width, dark=width < 600)
    assert pages.complaints() == []
    assert pages.run("return document.documentElement.scrollWidth") <= width, "nothing is cut off at the right"
    assert pages.run("return scrollY") == 0, "the answer is what is seen first"
    assert pages.run(SEEN, pages.one("h1"))
    asked = pages.requests()
    assert [one for one in asked if not one.startswith(("file:", "data:"))] == []


def test_the_tree_opens_and_closes(pages, files):
    pages.open(files["classic"])
    calls = len(shown(pages, "#tree .calls > li"))
    assert calls > 15 and "cudaMallocHost" in pages.one("#tree").text
    pages.one("#fold").click()
    assert not shown(pages, "#tree .calls > li")
    first = pages.one("#tree .branch")
    assert first.get_attribute("aria-expanded") == "false"
    pages.one("#tree summary").click()
    assert 0 < len(shown(pages, "#tree .calls > li")) < calls, "its own calls, and not those of its branches"
    pages.one("#fold").click()
    assert len(shown(pages, "#tree .calls > li")) == calls
    pages.run("document.querySelector('#tree .branch').focus()")
    first.send_keys("\ue012")  # left
    assert first.get_attribute("aria-expanded") == "false"
    first.send_keys("\ue014\ue014")  # right: it opens, then its first branch has the focus
    assert pages.run("return document.activeElement.getAttribute('aria-label')").startswith("▲ rank 2")


def test_search_finds(pages, files):
    pages.open(files["classic"])
    pages.one("#fold").click()
    write(pages, "#search", "HostBuffer::")
    assert pages.one("#found").text == "1 call"
    assert [one.text for one in shown(pages, "#tree .hit b")] == ["serve::HostBuffer::grow"], "its branches open"
    write(pages, "#search", "libcuda.so")
    pages.one("#search").send_keys("\ue007")
    assert pages.one("#found").text == "1 of 1 call" and pages.run(SEEN, pages.one("#tree .hit.at"))
    write(pages, "#search", "nothing of this name")
    assert pages.one("#found").text == "0 calls"


def test_filters_filter(pages, files):
    pages.open(files["classic"])
    write(pages, "#only-ranks", "5-7")
    assert "cudaMallocHost" not in pages.one("#tree").text and "ncclAllReduce" in pages.one("#tree").text
    write(pages, "#only-ranks", "2")
    assert "cudaMallocHost" in pages.one("#tree").text and "ncclAllReduce" not in pages.one("#tree").text
    write(pages, "#only-ranks", "all of them")
    assert pages.one("#found").text == "ranks are like 0-3,7"
    pages.run("document.getElementById('only-ranks').value = ''")
    pages.one("#only-ranks").send_keys(" ")
    pages.one("input[value=python]").click()
    assert {one.get_attribute("class") for one in shown(pages, "#tree .calls > li")} == {"py"}
    pages.one("input[value=native]").click()
    assert {one.get_attribute("class") for one in shown(pages, "#tree .calls > li")} == {"nat"}


def test_the_icicle_has_the_width_of_threads(pages, files):
    pages.open(files["classic"])
    pages.one("input[value=icicle]").click()
    wide = {
        one.get_attribute("aria-label").partition("  ")[0]: one.find_element("css selector", "rect").size["width"]
        for one in pages.all("#icicle g")
    }
    assert wide["ncclAllReduce"] == pytest.approx(7 * wide["cudaMallocHost"], rel=0.05)
    assert wide["main"] == pytest.approx(8 * wide["cudaMallocHost"], rel=0.05)
    write(pages, "#search", "HostBuffer")
    assert len(pages.all("#icicle g.hit")) == 1
    pages.run("document.querySelector('#icicle g.hit').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert pages.one("#icicle g").get_attribute("aria-label").startswith("serve::HostBuffer::grow"), "zoomed"


def test_a_click_on_evidence_shows_the_frame(pages, files):
    pages.open(files["classic"])
    pages.one(".evidence a").click()
    target = pages.run("return document.querySelector(':target')")
    assert target.text.startswith("cudaMallocHost") and pages.run(SEEN, target)
    pages.run("scrollTo(0, 0)")
    pages.one("#chain svg a").click()
    assert pages.run(SEEN, pages.run("return document.querySelector(':target')")), "so does the picture"


def test_frames_that_the_page_does_not_show_are_found(pages, files):
    pages.open(files["classic"], fragment="#p5-t0-f3")
    found = pages.one("#stack .shown")
    assert found.text.startswith("serve::Communicator::allReduce") and pages.run(SEEN, found)
    assert pages.run("return document.getElementById('rank').selectedOptions[0].text") == "rank 5"


def test_threads_of_a_rank(pages, files):
    pages.open(files["classic"])
    pages.all(".cell")[6].click()
    assert pages.run("return document.getElementById('rank').selectedOptions[0].text") == "rank 6"
    assert "25 threads" in pages.one("#about").text and "TP 2" in pages.one("#about").text
    names = [one.text for one in shown(pages, "#thread-table tbody tr")]
    assert len(names) == 7 and any(one.startswith("12 × pool") for one in names), "equal ones in one row"
    write(pages, "#thread-search", "rpc::Server")
    assert len(shown(pages, "#thread-table tbody tr")) == 1
    assert "serve::rpc::Server::loop" in pages.one("#stack").text
    pages.one("#after").click()
    assert pages.run("return document.getElementById('rank').selectedOptions[0].text") == "rank 7"


def test_a_thousand_ranks_are_there_at_once(pages, files):
    pages.open(files["large"])
    took = pages.run("return performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert 0 < took < 2000, "milliseconds"
    assert len(pages.all(".cell")) == 1024
    box = pages.one("#matrix").size
    assert box["height"] < 700, "they fit one screen"
    assert pages.one("#ranks").size["height"] < 850, "and so do the waits that they are in"
    assert [one.get_attribute("data-i") for one in pages.all(".cell.culprit")] == ["512"]


def test_a_set_of_the_matrix_leads_to_its_first_rank(pages, files):
    pages.open(files["classic"])
    assert [one.text.split("\n")[0] for one in shown(pages, "#waits a.set")] == ["▲ 2", "0-1,3", "4-7"]
    pages.all("#waits a.set")[2].click()
    assert pages.run("return document.getElementById('rank').selectedOptions[0].text") == "rank 4"
    pages.open(files["classic"], script=False)
    pages.one("#waits a.set.culprit").click()
    assert "cudaMallocHost" in pages.one(":target").text, "without the script as well"


def test_without_its_script(pages, files):
    pages.open(files["classic"], script=False)
    text = pages.one("body").text
    for said in (
        "Rank 2 is in cudaMallocHost",
        "What to do",
        "ranks 0-1,3-7 →",
        "serve::HostBuffer::grow",
        "pinned-host",
    ):
        assert said.lower() in text.lower(), said
    assert len(shown(pages, ".cell")) == 8 and len(shown(pages, "#chain svg text")) > 6
    assert len(shown(pages, "#tree .calls > li")) > 15
    assert not shown(pages, ".js"), "no control that does nothing"
    pages.one(".evidence a").click()
    assert pages.one(":target").is_displayed()


def test_a_difference_reads_without_its_script(pages, files):
    pages.open(files["difference"], script=False)
    assert pages.one("h1").text == "6 ranks did not move; 2 ranks gone"
    assert len(shown(pages, ".cell.waits")) == 6 and len(shown(pages, ".cell.absent")) == 2
    assert pages.one("#moves-table").text.split()[-4:] == ["6-7", "✕", "gone", "nccl-group-launch"]
    assert not shown(pages, ".js")


def test_light_and_dark(pages, files):
    def ground():
        return pages.run("return getComputedStyle(document.body).backgroundColor")

    pages.open(files["classic"])
    light = ground()
    pages.one("#theme").click()
    dark = ground()
    pages.open(files["classic"], dark=True)
    assert ground() == dark != light
    pages.run("localStorage.clear()")


def test_it_can_be_printed(pages, files, tmp_path):
    pages.open(files["classic"])
    pages.devtools("Emulation.setEmulatedMedia", {"media": "print"})
    assert not shown(pages, ".js") and not shown(pages, ".top")
    pages.printed(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("name", "dark"),
    [("classic", False), ("locks", True), ("slow", False), ("difference", False)],
    ids=["classic", "locks", "slow", "difference"],
)
def test_everybody_can_use_it(pages, files, name, dark):
    import axe_core_python

    pages.open(files[name], dark=dark)
    axe = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text("utf-8")
    pages.run(axe)
    if name == "classic":
        pages.one("input[value=icicle]").click()
    found = pages.browser.execute_async_script("axe.run().then(arguments[0])")
    bad = [(one["id"], one["impact"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found["violations"]]
    assert [one for one in bad if one[1] in ("serious", "critical")] == []
    assert len(found["passes"]) > 20
