"""The part of the documentation site that mkdocs cannot be configured to do: a hook, and a check.

The Markdown files of this repository link to each other by relative paths, which work on GitHub and
in an editor. mkdocs only knows what is below ``docs``. As a hook (see ``mkdocs.yml``) this file

- makes pages of README.md, CONTRIBUTING.md and the other files of ``OUTSIDE``, and of ``examples``;
- turns links to files into links to their pages, and links to directories into links to lists;
- expands ``directory/*`` in the navigation, so that a new decision or result needs no entry;
- takes the addresses of the project from ``pyproject.toml``.

``python tools/docs_site.py build/site`` checks the site that was built: every page can be reached
from the navigation, and nothing is loaded from another server.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent

# Files of the repository, and the pages of the site they become.
OUTSIDE = {
    "README.md": "index.md",
    "docs/README.md": "all-pages.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "RELEASING.md": "releasing.md",
    "SECURITY.md": "security-policy.md",
    "LICENSE": "license.md",
    "benchmarks/README.md": "benchmarks.md",
    "lab/README.md": "lab-package.md",
}
LANGUAGES = {".py": "python", ".conf": "ini", ".toml": "toml", ".sql": "sql"}
LISTS = {
    "docs/decisions": "# Decisions\n\nWhy it is built this way, one page for each decision.\n",
    "docs/results": "# Results\n\nWhat the experiments and tests measured.\n",
    "examples": "# Examples\n\nPrograms to start from; `make setup` installs what they need.\n",
}

LINK = re.compile(r"(?P<open>\]\()(?P<target>[^)\s]+)(?P<close>\))")
FENCE = re.compile(r"^(?P<fence>```+|~~~+)[^\n]*\n.*?^(?P=fence)[ ]*$", re.MULTILINE | re.DOTALL)
NO_RUN = re.compile(r"^```python no-run$", re.MULTILINE)


# --- the hook -------------------------------------------------------------------------------------


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the addresses from pyproject.toml, and expand the navigation."""
    urls = project_urls()
    config.repo_url = urls.get("Repository")
    config.site_url = urls.get("Documentation")
    if config.nav is not None:
        config.nav = expanded(config.nav)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of files outside of docs."""
    from mkdocs.structure.files import File  # noqa: PLC0415  not needed for the check

    index = files.get_file_from_path("README.md")
    if index is not None:
        files.remove(index)
    for uri, content in generated_pages().items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make links lead to pages of the site, and marks of our tests disappear."""
    uri = page.file.src_uri
    if uri == "index.md":
        page.meta["hide"] = ["navigation"]  # there is nothing beside it
    return relinked(NO_RUN.sub("```python", markdown), uri)


def project_urls() -> dict[str, str]:
    """The addresses of the project; reserved names (``.example``) lead nowhere and are left out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {name: url for name, url in project.get("urls", {}).items() if ".example" not in url}


def expanded(nav: list[Any]) -> list[Any]:
    """The navigation with the pages of a directory in place of ``directory/*``."""
    out: list[Any] = []
    for entry in nav:
        if not isinstance(entry, dict):
            out.append(entry)
            continue
        for title, below in entry.items():
            if isinstance(below, list):
                out.append({title: expanded(below)})
            elif below.endswith("/*"):
                directory = below.removesuffix("/*")
                out.append({title: [f"{directory}/index.md", *listed(directory)]})
            else:
                out.append({title: below})
    return out


def listed(directory: str) -> list[str]:
    """Pages of a directory of the site without its index, in order of their names."""
    if directory == "examples":
        return [f"examples/{path.name}.md" for path in examples()]
    pages = (ROOT / "docs" / directory).glob("*.md")
    return [f"{directory}/{path.name}" for path in sorted(pages) if path.name != "README.md"]


def examples() -> list[Path]:
    """The programs to start from, and their settings."""
    return sorted(path for path in (ROOT / "examples").iterdir() if path.suffix in LANGUAGES)


def generated_pages() -> dict[str, str]:
    """Pages of the site that are no files below docs, by their address in it."""
    pages = {}
    for name, uri in OUTSIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        pages[uri] = text if name.endswith(".md") else f"# Licence\n\n```text\n{text}```\n"
    for path in examples():
        code = path.read_text(encoding="utf-8")
        fence = f"```{LANGUAGES[path.suffix]}\n{code}```\n"
        pages[f"examples/{path.name}.md"] = f"# {path.name}\n\n{fence}"
    for directory, head in LISTS.items():
        folder = directory.removeprefix("docs/")
        links = [f"- [{title(uri)}]({Path(uri).name})" for uri in listed(folder)]
        pages[f"{folder}/index.md"] = head + "\n" + "\n".join(links) + "\n"
    return pages


def title(uri: str) -> str:
    """The heading of a page of the site."""
    if uri.startswith("examples/"):
        return Path(uri).stem
    text = (ROOT / "docs" / uri).read_text(encoding="utf-8")
    found = re.search(r"^# (.*)$", text, re.MULTILINE)
    return found[1] if found else Path(uri).stem


def relinked(markdown: str, uri: str) -> str:
    """The text of a page with links to files of the repository as links to pages of the site."""
    at = source_of(uri)
    if at is None:
        return markdown

    def moved(link: re.Match[str]) -> str:
        path, mark, anchor = link["target"].partition("#")
        if "://" in path or path.startswith("mailto:") or not path:
            return link[0]
        repository_path = os.path.normpath(os.path.join(os.path.dirname(at), path))
        target = page_of(repository_path)
        relative = os.path.relpath(target, os.path.dirname(uri) or ".")
        return f"{link['open']}{relative}{mark}{anchor}{link['close']}"

    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(moved, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join(parts) + LINK.sub(moved, markdown[end:])


def source_of(uri: str) -> str | None:
    """The file of the repository that a page is made of; None if it is made of several."""
    made_of = {page: name for name, page in OUTSIDE.items()}
    if uri in made_of:
        return made_of[uri]
    is_made_here = uri.startswith("examples/") or uri in {
        f"{directory.removeprefix('docs/')}/index.md" for directory in LISTS
    }
    return None if is_made_here else f"docs/{uri}"


def page_of(name: str) -> str:
    """The address in the site of a file or directory of the repository."""
    if name in OUTSIDE:
        return OUTSIDE[name]
    if name in LISTS:
        return f"{name.removeprefix('docs/')}/index.md"
    if name.startswith("examples/"):
        return f"{name}.md"
    # What is not below docs has no page: mkdocs warns of the link, which fails the build.
    return name.removeprefix("docs/") if name.startswith("docs/") else f"../{name}"


# --- the check ------------------------------------------------------------------------------------


class References(HTMLParser):
    """What a page links to, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses of a tag."""
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in given:
            self.links.add(given["href"].partition("#")[0])
        elif tag == "link" and given.get("rel") not in ("canonical", "next", "prev", "alternate"):
            self.loads.add(given.get("href", ""))
        elif "src" in given:
            self.loads.add(given["src"])


def references(page: Path) -> References:
    """What a page of the site refers to."""
    found = References()
    found.feed(page.read_text(encoding="utf-8"))
    return found


def unreachable(site: Path) -> list[str]:
    """Pages of the site that no chain of links from the home page leads to."""
    home = site / "index.html"
    seen, waiting = {home}, [home]
    while waiting:
        page = waiting.pop()
        for link in references(page).links:
            target = (page.parent / link).resolve() if link and "://" not in link else None
            if target and target.suffix == ".html" and target.exists() and target not in seen:
                seen.add(target)
                waiting.append(target)
    pages = {page for page in site.rglob("*.html") if page.name != "404.html"}
    return sorted(str(page.relative_to(site)) for page in pages - seen)


def loaded_from_elsewhere(site: Path) -> list[str]:
    """Scripts, styles and images from other servers, each with the file that loads it."""
    found = []
    for page in sorted(site.rglob("*.html")):
        outside = sorted(url for url in references(page).loads if re.match(r"(https?:)?//", url))
        found += [f"{page.relative_to(site)}: {url}" for url in outside]
    for style in sorted(site.rglob("*.css")):
        text = style.read_text(encoding="utf-8")
        outside = sorted(set(re.findall(r"url\([\"']?((?:https?:)?//[^\"')]+)", text)))
        found += [f"{style.relative_to(site)}: {url}" for url in outside]
    return found


def main(site: Path) -> int:
    """Check a site that was built; print what is wrong."""
    site = site.resolve()
    wrong = [f"cannot be reached from the home page: {page}" for page in unreachable(site)]
    wrong += [f"loaded from another server: {what}" for what in loaded_from_elsewhere(site)]
    if not (site / "search" / "search_index.json").exists():
        wrong.append("there is no index for the search")
    for line in wrong:
        print(f"docs: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
