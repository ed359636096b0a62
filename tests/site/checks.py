"""What must hold on an open page. Each function gives a list of problems, empty when all is well.

Every one is also run on a small page that is wrong (test_checks.py).
"""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page

from tools.browsing import at_rest

TOO_WIDE = """() => {
  const root = document.documentElement, room = root.clientWidth;
  if (root.scrollWidth <= room) return [];
  const held = e => {  // inside of a box that scrolls or cuts by itself
    for (let a = e.parentElement; a && a !== document.body; a = a.parentElement)
      if (getComputedStyle(a).overflowX !== "visible") return true;
    return false;
  };
  const wide = [...document.querySelectorAll("body *")]
    .filter(e => e.getBoundingClientRect().right > room + 1 && !held(e))
    .map(e => `<${e.localName} class="${e.getAttribute("class") || ""}">`);
  return [`the page is ${root.scrollWidth} px wide in ${room} px: ${wide.slice(0, 5).join(", ")}`];
}"""

CUT_CONTROLS = """() => [...document.querySelectorAll("figure.lens")].flatMap(figure => {
  const edge = figure.getBoundingClientRect().right + 1;
  return [...figure.querySelectorAll(".lens-controls *")]
    .filter(e => e.tagName !== "OPTION" && e.getBoundingClientRect().right > edge)
    .map(e => `${figure.ariaLabel}: ${e.outerHTML.slice(0, 60)}`);
})"""

MISJUDGED = """() => {
  const sections = [...document.querySelectorAll("article > section > section")];
  const guessed = sections.map(s => parseFloat(getComputedStyle(s).getPropertyValue("--tall")));
  for (const section of sections) section.style.contentVisibility = "visible";
  const found = sections.map((s, k) => [s.id, guessed[k] / s.getBoundingClientRect().height]);
  return Object.fromEntries(found.filter(([_, share]) => Math.abs(share - 1) > 0.12));
}"""

CLIPPED = """() => [...document.querySelectorAll("div.math")].flatMap(box => {
  const formula = box.querySelector(".katex-html");
  if (!formula || !box.clientWidth) return [];
  const name = formula.textContent.slice(0, 40);
  const parts = [...formula.querySelectorAll(".base")].map(b => b.getBoundingClientRect());
  const left = Math.min(...parts.map(r => r.left)), right = Math.max(...parts.map(r => r.right));
  const edge = box.getBoundingClientRect();
  if (left < edge.left - 1) return [`cut off on the left: ${name}`];
  if (right <= edge.right + 1) return [];
  const scrolls = [...box.querySelectorAll("*")].some(
    e => ["auto", "scroll"].includes(getComputedStyle(e).overflowX)
      && e.scrollWidth > e.clientWidth);
  return scrolls ? [] : [`cut off on the right, and does not scroll: ${name}`];
})"""

RAW_MATHS = r"""() => {
  const article = document.querySelector("article") || document.body, found = [];
  const walk = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode, skip = "pre, code, script, style, annotation, template, svg";
    if (!text.parentElement.closest(skip) && /\$[^$]+\$|\$\$|\\\(|\\\[/.test(text.data))
      found.push(`maths left as source: ${text.data.trim().slice(0, 60)}`);
  }
  for (const formula of article.querySelectorAll(".katex"))
    if (!formula.querySelector("math")) found.push(`no MathML: ${formula.textContent}`);
  for (const bad of article.querySelectorAll(".katex-error, :is(span, div).math:not(:has(.katex))"))
    found.push(`a formula that was not drawn: ${bad.textContent}`);
  return found;
}"""

UNNAMED = """() => [...document.querySelectorAll("figure.lens")].flatMap((figure, i) => {
  const name = figure.getAttribute("aria-label") || "", found = [];
  if (!name.trim()) found.push(`figure ${i} has no accessible name`);
  if (figure.getAttribute("role") !== "figure") found.push(`figure ${i} (${name}) has no role`);
  const twins = [...figure.querySelectorAll("details .lens-twin pre")];
  if (!twins.length || twins.some(t => !t.textContent.trim()))
    found.push(`figure ${i} (${name}) has no text twin, or an empty one`);
  if (!figure.querySelector(".lens-stage :is(svg, pre, table)"))
    found.push(`figure ${i} (${name}) shows nothing`);
  return found;
})"""

REFERENCES = r"""() => {
  const ids = [...document.querySelectorAll("[id]")].map(e => e.id), found = [];
  for (const {id} of document.querySelectorAll("figure.lens [id]"))
    if (ids.filter(other => other === id).length > 1) found.push(`the id ${id} is there twice`);
  for (const e of document.querySelectorAll("svg *"))
    for (const {name, value} of e.attributes) {
      const leads = value.match(name.endsWith("href") ? /^#(.+)/ : /url\(["']?#([^"')]+)/);
      if (leads && !ids.includes(leads[1]))
        found.push(`${e.localName} ${name}="${value}" leads nowhere`);
    }
  return found;
}"""


def too_wide(page: Page) -> list[str]:
    """Something makes the page scroll sideways."""
    return page.evaluate(TOO_WIDE)


def clipped_maths(page: Page) -> list[str]:
    """A formula of which the reader can't see a part, not even by scrolling it."""
    return page.evaluate(CLIPPED)


def misjudged(page: Page) -> dict[str, float]:
    """Sections whose guessed height is off, with the guess as a share of their height."""
    return page.evaluate(MISJUDGED)


def cut_controls(page: Page) -> list[str]:
    """A control of a figure that reaches beyond the figure."""
    return page.evaluate(CUT_CONTROLS)


def raw_maths(page: Page) -> list[str]:
    """Maths that is still source, or drawn without MathML."""
    return page.evaluate(RAW_MATHS)


def unnamed_figures(page: Page) -> list[str]:
    """A figure without name, role, content or text twin."""
    return page.evaluate(UNNAMED)


def broken_references(page: Page) -> list[str]:
    """An id used twice, or a reference inside an SVG that leads nowhere.

    Either makes arrows and gradients vanish in some frame.
    """
    return page.evaluate(REFERENCES)


def unfold(page: Page) -> None:
    """Open every hint, answer, hidden cell and twin."""
    page.evaluate("() => document.querySelectorAll('details').forEach(d => d.open = true)")
    at_rest(page)  # they fade in, and contrast is lower until then


def unfold_text(page: Page) -> None:
    """Open what holds figures, such as an answer, and leave their twins folded."""
    page.evaluate(
        "() => document.querySelectorAll('details:not(figure.lens details)')"
        ".forEach(d => d.open = true)"
    )


# A chapter has tens of thousands of coloured words of code, and axe asks for the contrast of each.
# Those that look the same on the same ground differ for nobody: some of each kind stay. It can't
# judge a single character, so those are a kind of their own.
SOME_OF_EACH = """most => {
  const seen = new Map(), grounds = new Map([[null, ""]]);
  const ground = e => {
    if (!grounds.has(e)) {
      const s = getComputedStyle(e);
      grounds.set(e, [s.backgroundColor, s.backgroundImage, s.opacity, s.filter, s.display,
        s.visibility, ground(e.parentElement)].join());
    }
    return grounds.get(e);
  };
  const again = [...document.querySelectorAll("pre span, .katex-html span")].filter(e => {
    if (e.children.length || [...e.attributes].some(a => !["class", "style"].includes(a.name)))
      return false;
    const s = getComputedStyle(e);
    const text = e.textContent.trim(), kind = [text.length > 1, /\\w/.test(text)];
    const look = [...kind, s.color, s.fontSize, s.fontWeight, s.textShadow, s.position, ground(e)];
    const count = (seen.get(look.join()) || 0) + 1;
    seen.set(look.join(), count);
    return count > most;
  });
  again.forEach(e => e.remove());
  return again.length;
}"""


def barriers(page: Page, also: tuple[str, ...] = (), without: str = "") -> list[str]:
    """Serious and critical violations that axe-core finds, and those of the rules in `also`.

    Sections that are not laid out yet would be passed over; they are laid out for it. What the
    selector `without` finds is taken away first. The page can't be used for anything else then.
    """
    page.add_style_tag(content="section { content-visibility: visible !important }")
    page.evaluate(SOME_OF_EACH, 4)
    if without:
        page.locator(without).evaluate_all("parts => parts.forEach(part => part.remove())")
    found = Axe().run(page).response["violations"]
    return [
        f"{rule['id']}: {rule['help']}: {node['target']} {node['failureSummary']}"
        for rule in found
        if rule["impact"] in ("serious", "critical") or rule["id"] in also
        for node in rule["nodes"]
    ]


PLACES = ("heading-order", "page-has-heading-one", "region", "landmark-one-main", "skip-link") + (
    "landmark-unique",
    "landmark-no-duplicate-main",
    "empty-heading",
    "aria-allowed-role",
)


MOVING = """() => [...document.querySelectorAll("*")].flatMap(
  e => ["", "::before", "::after"].flatMap(pseudo => {
    const style = getComputedStyle(e, pseudo || null);
    const long = list => list.split(",").some(time => parseFloat(time) > 0.001);
    const moves = style.scrollBehavior === "smooth" || long(style.transitionDuration)
      || (style.animationName !== "none" && long(style.animationDuration));
    return moves ? [`<${e.localName} class="${e.getAttribute("class") || ""}">${pseudo}`] : [];
  }))"""


def moving(page: Page) -> list[str]:
    """What scrolls smoothly, fades or turns."""
    return page.evaluate(MOVING)


def disorder(page: Page) -> list[str]:
    """What axe-core says about headings, landmarks and roles, however lightly it takes it."""
    return barriers(page, PLACES)


def deaf_figures(page: Page) -> list[str]:
    """Figures with several frames whose first control does nothing when a key is pressed on it."""
    unfold_text(page)
    found = []
    for figure in page.locator("figure.lens:has(.lens-frame)").all():
        slider = figure.locator("input.lens-choice")
        last = figure.locator(".lens-menu").first.locator("button").last
        control, key = (slider.first, "ArrowRight") if slider.count() else (last, "Enter")
        if not control.count() or not changes(figure, control, key):
            found.append(f"{figure.get_attribute('aria-label')}: its first control changes nothing")
    return found


def dead_controls(page: Page) -> list[str]:
    """Controls of figures that do nothing when worked by keyboard."""
    unfold_text(page)
    found = []
    for i, figure in enumerate(page.locator("figure.lens").all()):
        name = f"figure {i} ({figure.get_attribute('aria-label')})"
        frames = figure.locator(".lens-frame").count()
        controls = figure.locator(
            ".lens-controls :is(.lens-choice, .lens-next, .lens-prev, .lens-play)"
        ).all()
        # A playing film would change the picture for a dead neighbour: play comes last.
        controls.sort(key=lambda control: "lens-play" in control.get_attribute("class"))
        if frames > 1 and not controls:
            found.append(f"{name}: {frames} frames and no control")
        found += [f"{name}: {problem}" for c in controls if (problem := dead(figure, c))]
    return found


def picture(figure: Locator) -> str:
    """What stands on the stage of a figure."""
    return figure.locator(".lens-stage").inner_html()


def shown(figure: Locator) -> str:
    """What a figure shows now: picture, heading and caption."""
    return figure.evaluate(
        "f => [...f.querySelectorAll('.lens-head, .lens-stage, .lens-caption')]"
        ".map(part => part.innerHTML).join()"
    )


def dead(figure: Locator, control: Locator) -> str:
    """Why a control does not work, or nothing."""
    kind = control.get_attribute("class")
    if not control.is_visible():
        return f"{kind} can't be seen"
    buttons = control.locator("button").all() if "lens-menu" in kind else []
    if any(one.evaluate("c => c.tabIndex < 0") for one in buttons or [control]):
        return f"{kind} can't be reached with Tab"
    if buttons:
        return dead_menu(figure, buttons)
    if "lens-choice" in kind:
        return dead_choice(figure, control)
    if "lens-prev" in kind and figure.locator(".lens-next").count():  # away from the first frame
        figure.locator(".lens-next").first.press("Enter")
    if "lens-next" in kind and figure.locator(".lens-prev").count():
        figure.locator(".lens-prev").first.press("Enter")
    return "" if changes(figure, control, "Enter") else f"{kind} changes nothing"


def dead_menu(figure: Locator, buttons: list[Locator]) -> str:
    """Press each button of a menu and go back, as in `dead_choice`; one is pressed at a time."""
    buttons[0].press("Enter")  # a figure may open on another one
    pictures = {picture(figure)}
    for button in [*buttons[1:], *buttons[-2::-1]]:
        name = button.text_content()
        if not changes(figure, button, "Enter"):
            return f"{name!r} changes nothing"
        pressed = [b.text_content() for b in buttons if b.get_attribute("aria-pressed") == "true"]
        if pressed != [name]:
            return f"{name!r} was chosen, and {pressed} is said to be"
        pictures.add(picture(figure))
    return "" if len(pictures) > 1 else "the same picture at every choice"


def dead_choice(figure: Locator, control: Locator) -> str:
    """Walk a slider through all its values and back.

    Each step must change what is shown, and the picture must not stay the same throughout.
    """
    steps = control.evaluate("c => Math.round((c.max - c.min) / (c.step || 1))")
    if steps < 1:
        return "a choice of one value"
    control.press("Home")
    pictures = {picture(figure)}
    for way in ("ArrowRight", "ArrowLeft"):
        for step in range(steps):
            if not changes(figure, control, way):
                return f"step {step + 1} of {steps} with {way} changes nothing"
            pictures.add(picture(figure))
    return "" if len(pictures) > 1 else "the same picture at every step"


def changes(figure: Locator, control: Locator, key: str) -> bool:
    """Whether a key pressed on a control changes what the figure shows."""
    before = shown(figure)
    control.press(key)
    if shown(figure) == before:  # the page answers by itself, most often at once
        at_rest(figure.page)
    return shown(figure) != before


def hidden_without_script(page: Page) -> list[str]:
    """With scripts off: the first frame is drawn, the twin opens, no dead control is in sight."""
    unfold_text(page)
    found = []
    for i, figure in enumerate(page.locator("figure.lens").all()):
        name = f"figure {i} ({figure.get_attribute('aria-label')})"
        picture = figure.locator(".lens-stage :is(svg, pre, table):visible").first
        box = picture.bounding_box() if picture.count() else None
        if not box or box["width"] < 10 or box["height"] < 10:
            found.append(f"{name}: the first frame isn't there")
        if any(c.is_visible() for c in figure.locator(".lens-controls").all()):
            found.append(f"{name}: controls that can't work are shown")
        summary = figure.locator("summary:has(+ .lens-twin)").first
        twin = figure.locator(".lens-twin pre").first
        if not summary.count() or not twin.count():
            found.append(f"{name}: no twin")
            continue
        summary.press("Enter")
        if not twin.is_visible():
            found.append(f"{name}: the twin doesn't open")
    return found
