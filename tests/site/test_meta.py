"""What pages say about themselves, and the files by which the site is found."""

import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import files
import nbformat
import pytest
from lean_pages import meta, pages
from PIL import Image

from tools.building import build
from tools.repository import pages_address, site_address
from tools.set_repository import set_repository
from tools.testing.sizes import sized

ROOT = Path(__file__).parents[2]
DOCUMENTS = "book/*.html"


@pytest.fixture(scope="module")
def read(site) -> dict[str, files.Reader]:
    """Every page of the built site."""
    return {name: files.Reader((site / name).read_text("utf-8")) for name in files.pages(site)}


@pytest.fixture(scope="module")
def documents(site, read) -> dict[str, files.Reader]:
    """The pages that have a source."""
    found = {path.relative_to(site).as_posix() for path in site.glob(DOCUMENTS)}
    assert found
    return {name: read[name] for name in found}


def test_titles_and_descriptions_are_there_and_differ(read, documents):
    for say in (lambda page: page.title.strip(), lambda page: page.meta["description"]):
        said = [say(page) for page in documents.values()]
        assert all(said) and len(set(said)) == len(said)
    assert all(page.title.strip() and page.meta.get("description") for page in read.values())
    assert all(len(page.meta["description"]) <= 200 for page in read.values())


def test_the_first_page_says_its_title_once(documents):
    assert documents["book/index.html"].title.strip() == "Autograd Under the Lens"


def test_cards_repeat_what_the_page_says_and_lead_to_it(site, documents):
    for name, page in documents.items():
        says, here = page.meta, urljoin(site_address(), name)
        assert page.says["canonical"] == says["og:url"] == here
        assert page.title.strip().startswith(says["og:title"])
        assert says["og:title"] == says["twitter:title"]
        assert says["description"] == says["og:description"] == says["twitter:description"]
        assert says["og:type"] == ("website" if name == "book/index.html" else "article")
        assert says["og:image"] == says["twitter:image"]
        assert says["twitter:card"] == "summary_large_image"
        assert says["og:image"].startswith(site_address())
        with Image.open(site / says["og:image"].removeprefix(site_address())) as image:
            assert image.size == (int(says["og:image:width"]), int(says["og:image:height"]))


def test_what_is_no_document_is_not_to_be_found(read, documents):
    for name, page in read.items():
        assert (page.meta.get("robots") == "noindex") == (name in ("search.html", "404.html"))
    assert read["index.html"].says["canonical"] == urljoin(site_address(), "book/index.html")


def test_the_sitemap_lists_every_document(site, documents):
    root = ET.parse(site / "sitemap.xml").getroot()
    listed = [loc.text for loc in root.iter("{http://www.sitemaps.org/schemas/sitemap/0.9}loc")]
    assert sorted(listed) == sorted(urljoin(site_address(), name) for name in documents)
    assert f"Sitemap: {site_address()}sitemap.xml" in (site / "robots.txt").read_text("utf-8")


def test_dead_addresses_of_a_page_are_seen(tmp_path):
    html = '<head><meta property="og:image" content="https://a.invalid/b/c.png"></head>'
    (tmp_path / "page.html").write_text(html, "utf-8")
    assert files.dead_links(tmp_path, "https://a.invalid/b/")
    assert files.dead_links(tmp_path, "https://elsewhere.invalid/") == []


@pytest.mark.needs("chromium")
@pytest.mark.parametrize(
    "lost",
    sized(
        ["nowhere.html", "book/deep/er/nowhere.html"],
        lambda lost: "/" in lost,
        "the deepest is asked for",
    ),
)
def test_a_wrong_address_leads_back_at_any_depth(visit, address, lost):
    page, journal = visit(lost)
    assert page.get_by_role("heading", level=1).inner_text() == "This page does not exist"
    assert journal.missing == [address + lost]  # the page itself, and nothing that it loads
    assert [said for said in journal.errors if "404" not in said] == []
    page.locator("article a").last.click()
    page.wait_for_url(f"{address}book/*.html")
    assert page.locator("article h1").is_visible()


@pytest.mark.parametrize(
    ("repository", "site"),
    [
        ("https://github.com/Some-One/a.book", "https://some-one.github.io/a.book/"),
        ("https://github.com/one/One.github.io", "https://one.github.io/"),
        ("https://gitlab.com/one/book", "https://one.gitlab.io/book/"),
        ("https://example.org/book", "https://example.org/book/"),
    ],
)
def test_the_address_of_the_site_follows_from_the_repository(repository, site):
    assert pages_address(repository) == site


def test_another_address_of_the_site_may_be_given(tmp_path):
    text = 'Repository = "https://github.com/one/book"\nDocumentation = "https://book.example"\n'
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")
    assert site_address(tmp_path) == "https://book.example/"


def test_a_long_paragraph_is_cut_between_sentences_or_words():
    assert meta.shortened("One two. Three four.", 12) == "One two."
    assert meta.shortened("One two. Three four.") == "One two. Three four."
    assert meta.shortened("One two, three four", 12) == "One two…"


def test_links_of_404_begin_at_the_top():
    html = (
        '<html data-content_root="./"><a href="a/b.html"><a href="#c"><a href="https://d.invalid/">'
    )
    assert meta.from_the_top(html, "https://e.invalid/f/") == (
        '<html data-content_root="/f/"><a href="/f/a/b.html"><a href="#c">'
        '<a href="https://d.invalid/">'
    )
    with pytest.raises(pages.PatternMissing):
        meta.from_the_top("<html>", "https://e.invalid/f/")


def tiny_notebook() -> str:
    """A notebook of one cell."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("# Two\n\nOf the second page.")],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    return nbformat.writes(notebook)


def tiny_book(folder: Path, url: str | None) -> Path:
    """The book's own configuration on two small pages, at an address; built."""
    for name in ("_config.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    for name in ("_ext", "_static", "tools"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "book").mkdir()
    (folder / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nchapters:\n- file: book/two\n"
    )
    text = "---\ndescription: What was asked for.\n---\n# One\n\nOf the first page.\n"
    (folder / "book" / "index.md").write_text(text, "utf-8")
    (folder / "book" / "two.ipynb").write_text(tiny_notebook(), "utf-8")
    if url:
        set_repository(url, folder)
    run = build(folder, folder)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder / "_build" / "html"


def launchers(page: files.Reader) -> list[str]:
    """Links that start a notebook somewhere."""
    hosts = ("colab.research.google.com", "mybinder.org")
    return sorted(link for link in page.links if urlsplit(link).netloc in hosts)


@pytest.mark.large("the links are looked for in the book as it is built, at its own address")
def test_on_github_chapters_open_in_colab_and_binder(tmp_path):
    site = tiny_book(tmp_path, "https://github.com/o/n")
    page = files.Reader((site / "book" / "two.html").read_text("utf-8"))
    assert launchers(page) == [
        "https://colab.research.google.com/github/o/n/blob/published/book/two.ipynb",
        "https://mybinder.org/v2/gh/o/n/published?urlpath=lab/tree/book/two.ipynb",
    ]
    assert "../_sources/book/two.ipynb" in page.links
    assert page.says["canonical"] == "https://o.github.io/n/book/two.html"
    first = files.Reader((site / "book" / "index.html").read_text("utf-8"))
    assert launchers(first) == []  # no notebook
    assert first.meta["description"] == "What was asked for."
    assert files.dead_links(site, "https://o.github.io/n/") == []
    assert files.foreign(site) == []
    assert 'href="/n/book/index.html"' in (site / "404.html").read_text("utf-8")


def test_elsewhere_chapters_can_be_downloaded_and_nothing_else(site, documents):
    assert urlsplit(site_address()).netloc == "example.org"
    for name, page in documents.items():
        assert launchers(page) == []
        source = f"_sources/{name.removesuffix('.html')}"
        found = [link for link in page.links if source in link]
        assert len(found) == 1 and (site / "book" / found[0]).resolve().is_file()


def test_two_pages_may_not_describe_themselves_alike():
    with pytest.raises(pages.NotLean, match="a and b"):
        meta.refuse_twins({"a": "the same", "b": "the same", "c": "another"})
