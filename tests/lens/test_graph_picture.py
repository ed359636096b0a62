"""What stands in the boxes of a graph's picture, whether it fits, and what a box tells."""

import re
from html import unescape

import pytest
import torch
from independent import inline_svgs

import autograd_lens as lens
from autograd_lens.graphs.formulas import formula
from autograd_lens.view.graph_facts import facts, saved_brief
from autograd_lens.view.text import short_name
from tools.testing.sizes import sized

dot = pytest.mark.needs("dot")
chromium = pytest.mark.needs("chromium")
FONTS = ("Arial, 'Liberation Sans', Helvetica", "'DejaVu Sans', Verdana", "'DejaVu Serif', Georgia")

# At the right of every text in a box, up to the border of the smallest box around it.
FREE = """() => [...document.querySelectorAll('.lens-stage [data-lens^=node] text')].map(text => {
  const t = text.getBoundingClientRect(), middle = (t.top + t.bottom) / 2;
  const around = [...text.closest('g').querySelectorAll('path, polygon')]
    .map(shape => shape.getBoundingClientRect())
    .filter(b => b.left <= t.left && t.left < b.right && b.top <= middle && middle <= b.bottom);
  const scale = text.getScreenCTM().a * 3 / 4;
  return [text.textContent, (Math.min(...around.map(b => b.right)) - t.right) / scale];
})"""


def mlp():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    loss = torch.nn.functional.cross_entropy(
        model(torch.randn(5, 3)), torch.tensor([0, 1, 1, 0, 1])
    )
    return lens.record_backward(loss, model)


def long_names():
    a, b = torch.ones(3, 4, requires_grad=True), torch.ones(4, 5, requires_grad=True)
    h = a @ b
    names = {"encoder.layers.11.self_attention.MWMWMWMW.weight": a, "decoder.norm2.weight": b}
    return lens.graph(h.softmax(1).log().sum(), names | {"activation.of.layer.eleven": h})


def opaque():
    base = torch.ones(4, requires_grad=True) * 2
    base[1:3].mul_(3)
    weights = [torch.ones(2, requires_grad=True) for _ in range(2)]
    scaled = torch._foreach_mul(weights, 2.0)
    return lens.graph([base.exp().sum(), scaled[0].sum()], {"layers.11.norm2.weight": weights[0]})


def hooks():
    w = torch.ones(3, requires_grad=True)
    w.register_hook(lambda gradient: gradient)
    w.register_post_accumulate_grad_hook(lambda parameter: None)
    h = w.sigmoid()
    h.retain_grad()
    return lens.graph((h * w).tanh().pow(3).sum(), {"w": w, "h": h})


def large():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    return lens.graph(model(torch.randn(1, 4, 8)).sum(), model)


def changed():
    x = torch.ones(2, requires_grad=True)
    h = x.exp()
    y = (h * h).sum()
    h.add_(1)
    return lens.graph(y, {"x": x, "h": h})


def short():
    a, b = torch.ones(3, 4, requires_grad=True), torch.ones(4, 5, requires_grad=True)
    return lens.graph((a @ b).exp(), {"a": a, "decoder.b": b})


@dot
@chromium
@pytest.mark.parametrize(
    "make",
    sized(
        [mlp, long_names, opaque, hooks, large, changed, short],
        lambda make: make in (mlp, long_names, short),
        "a film, a graph of long names and one from left to right are measured so",
    ),
)
def test_every_text_fits_into_its_box_in_any_font(opened, make):
    from tools.look import measure, stage

    page = opened(make(), width=1200)
    stage.prepare(page)
    for font in FONTS:
        page.add_style_tag(content=f".lens-stage svg text {{ font-family: {font} !important }}")
        for show in stage.show_first, stage.show_last:
            show(page)
            free = page.evaluate(FREE)
            assert free
            tight = [(text, room) for text, room in free if room < 8]
            assert not tight, (font, tight)
        kinds = ("text-leaves-box", "text-leaves-picture", "texts-overlap")
        problems = measure.measure_figures(page, "view", None)
        assert not [problem for problem in problems if problem.kind in kinds]


@dot
@chromium
def test_a_box_tells_pytorchs_formula_when_pointed_to_tapped_or_reached(opened):
    page = opened(mlp(), width=390)
    line = page.locator(".lens-note")
    assert "Tap an operation" in line.inner_text()
    page.locator(".lens-stage .noted", has_text="ReluBackward0").click()
    assert (
        line.inner_text() == "ReluBackward0 in PyTorch: self: threshold_backward(grad, result, 0)"
    )
    page.locator(".lens-stage .noted", has_text="LogSoftmaxBackward0").hover()
    assert "_log_softmax_backward_data(grad, result, dim" in line.inner_text()
    page.get_by_role("button", name="next").click()  # the note outlives the frame
    assert "_log_softmax_backward_data(grad, result, dim" in line.inner_text()
    first = page.locator(".lens-stage .noted[tabindex='0']")
    first.focus()
    assert line.inner_text().startswith("NllLossBackward0 in PyTorch: self: nll_loss_backward")
    page.keyboard.press("ArrowDown")
    assert line.inner_text().startswith("LogSoftmaxBackward0 in PyTorch")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")  # no box is above the first
    assert line.inner_text().startswith("NllLossBackward0 in PyTorch")
    page.locator(".lens-stage .noted", has_text="ReluBackward0").hover()
    assert line.inner_text().startswith("NllLossBackward0"), "a ring is around that one"
    assert line.get_attribute("aria-live") == "polite"


@dot
def test_a_film_says_pytorchs_formulas_once():
    html = unescape(mlp()._repr_mimebundle_()["text/html"])
    assert html.count("mm_mat1_backward(grad, mat2, alpha)") == 1
    for svg in inline_svgs(html):
        assert "backward(" not in svg


@dot
@chromium
def test_without_scripts_no_line_promises_anything(opened):
    page = opened(mlp(), width=390, script=False)
    assert not page.locator(".lens-note").is_visible()


@dot
@chromium
def test_a_still_graph_tells_too_and_so_does_each_frame_of_an_explorer(opened):
    def draw(power):
        w = torch.ones(2, requires_grad=True)
        return lens.graph(w**power if power > 1 else w.sin(), {"w": w})

    page = opened(lens.explore(draw, power=[1, 2]), width=860)
    line = page.locator(".lens-note")
    page.locator(".lens-stage .noted:visible").click()
    assert line.inner_text() == "SinBackward0 in PyTorch: self: grad * self.cos().conj()"
    page.get_by_role("button", name="2", exact=True).click()
    page.locator(".lens-stage .noted:visible").click()
    assert "pow_backward(grad, self, exponent)" in line.inner_text()
    page = opened(draw(1), width=860)
    page.locator(".lens-stage .noted:visible").click()
    assert "grad * self.cos().conj()" in page.locator(".lens-note").inner_text()


def lines(graph, node):
    """What stands in the box of a node, below its name."""
    return [fact.brief for fact in facts(graph, graph.nodes[node], True) if fact.brief]


def test_the_lines_of_a_box():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = torch.sub(x * x, x.exp(), alpha=2)
    graph = lens.graph(y, {"x": x})
    by_name = {node.name: lines(graph, node.index) for node in graph.nodes}
    assert by_name["SubBackward0"] == ["output (3,)", "self: grad", "other: −2 · grad"]
    assert by_name["ExpBackward0"] == ["grad · result", "result → (3,), 12 B"]
    assert by_name["MulBackward0"] == [
        "self: grad · other",
        "other: grad · self",
        "other → x, (3,), 12 B",
        "self → x, (3,), 12 B",
    ]
    assert lines(lens.graph(x + x), 0) == ["output (3,)", "self, other: grad"]
    assert lines(lens.graph(x**3, {"x": x}), 0) == [
        "output (3,)",
        "grad · n · selfⁿ⁻¹, n = 3",
        "self → x, (3,), 12 B",
    ]


def test_values_that_a_node_keeps_stand_in_the_form_or_after_it():
    x = torch.ones(4, 6, requires_grad=True)
    part = lens.graph(x[1:].softmax(1))
    assert lines(part, 0)[1:] == [
        "result · (grad − Σ result · grad)",
        "dim = 1",
        "result → (3, 6), 72 B",
    ]
    assert lines(part, 1) == ["grad at [1::1], else 0", "dim = 0"]
    frozen = lens.graph(torch.add(x, torch.ones(6), alpha=3))
    assert lines(frozen, 0) == ["output (4, 6)", "self: grad"]
    assert "alpha = 3" in str(frozen)


def test_where_there_is_no_form_a_box_has_the_name_alone():
    x = torch.ones(2, requires_grad=True)
    graph = lens.graph(x.norm(), {"x": x})
    assert formula(graph.nodes[0].name)
    assert not [line for line in lines(graph, 0) if "backward" in line or line.startswith("self:")]
    assert "linalg_vector_norm_backward" in str(graph)


def test_no_box_holds_cpp():
    for make in long_names, opaque, hooks, large, changed:
        graph = make()
        for node in graph.nodes:
            for line in lines(graph, node.index):
                assert not re.search(r"backward\(|::|->|\.conj\(", line), line


def test_a_version_stands_in_a_box_where_something_was_written():
    graph = changed()
    saved = {s.field: saved_brief(graph, s) for node in graph.nodes for s in node.saved}
    assert saved["self"] == "self → h, (2,), 8 B, saved at 0, now 1"
    written = (torch.ones(2, requires_grad=True) * 1).add_(1)
    graph = lens.graph(written.sin())
    assert saved_brief(graph, graph.nodes[0].saved[0]) == "self → (2,), 8 B, version 1"
    graph = lens.graph((torch.ones(2, requires_grad=True) * 1).sin())
    assert saved_brief(graph, graph.nodes[0].saved[0]) == "self → (2,), 8 B"


def shared_by_a_layer():
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 4)
    h = torch.ones(3, 4)
    for _ in range(3):
        h = layer(h).tanh().exp()
    return lens.graph(h.sum(), layer)


def shared_without_names():
    x, w = (torch.ones(3, requires_grad=True) for _ in range(2))
    return lens.graph(((x.exp() * w).sum(), (x * x.detach().requires_grad_()).sum()))


def shared_with_a_given_name():
    x = torch.ones(3)
    leaf = x.detach().requires_grad_()
    return lens.graph((leaf.exp() * leaf).sum(), {"x": x})


@pytest.mark.parametrize(
    "make",
    [
        shared_by_a_layer,
        shared_without_names,
        shared_with_a_given_name,
        changed,
        long_names,
    ],
)
def test_boxes_that_hold_one_storage_call_it_by_one_name(make):
    graph = make()
    said, holders = {}, {}
    for node in graph.nodes:
        known = facts(graph, node, True)
        for saved in node.saved:
            for number in saved.storages:
                fact = next(fact for fact in known if fact.saved is saved)
                name = fact.brief.split(" → ")[1].split(", ")[0]
                said.setdefault(number, set()).add(name if name[0] != "(" else "")
                holders.setdefault(number, set()).add(node.index)
        for number in node.leaf.storages if node.leaf else ():
            names = {fact.brief for fact in known if fact.kind == "storage"}
            names = names or {short_name(node.label, 32)}
            said.setdefault(number, set()).update(names)
            holders.setdefault(number, set()).add(node.index)
    shared = {number for number, nodes in holders.items() if len(nodes) > 1}
    assert shared == graph.shared_storages and shared
    for number in shared:
        assert len(said[number]) == 1 and said[number] != {""}
    names = [next(iter(said[number])) for number in shared]
    assert len(names) == len(set(names))  # and no other one by that name


def test_a_packed_row_that_keeps_several_storages_names_none_of_them():
    a, b = (torch.ones(2, 2, requires_grad=True) for _ in range(2))
    shelf = []

    def put(tensor):
        shelf.append(tensor.detach())
        return len(shelf) - 1

    with torch.autograd.graph.saved_tensors_hooks(put, lambda number: shelf[number]):
        y = a @ b
    graph = lens.graph(y, {"a": a, "b": b})
    said = [saved_brief(graph, saved) for saved in graph.nodes[0].saved]
    assert said == [f"{field} → packed as int, 0 B, keeps 32 B alive" for field in ("mat2", "self")]


@pytest.mark.parametrize("make", [shared_by_a_layer, shared_without_names, mlp])
def test_no_line_crosses_the_boxes(make):
    """Only edges are drawn: lines between rows that share memory ran through what stands there."""
    view = make()
    graph = getattr(view, "graph", view)
    drawn = [line for line in graph.to_dot().splitlines() if " -> " in line]
    assert len(drawn) == len(graph.edges)
    assert "shared" not in view.figure().legend


def sliced(*bounds):
    return torch.ops.aten.slice(torch.ones(4, 5, requires_grad=True), 0, *bounds)


@pytest.mark.parametrize(
    ("make", "start", "end", "form"),
    [
        (lambda: torch.ones(4, requires_grad=True)[1:], "1", "to the end", "[1::1]"),
        (lambda: torch.ones(4, 5, requires_grad=True)[:, ::2], "0", "to the end", "[0::2]"),
        (lambda: torch.ones(4, requires_grad=True)[: 2**63 - 1], "0", "to the end", "[0::1]"),
        (lambda: torch.ones(4, requires_grad=True)[:-1], "0", "-1", "[0:-1:1]"),
        (lambda: torch.ones(4, requires_grad=True)[-3:3], "-3", "3", "[-3:3:1]"),
        (lambda: sliced(None, 3), "from the beginning", "3", "[:3:1]"),
        (lambda: sliced(None, None), "from the beginning", "to the end", "[::1]"),
        (lambda: sliced(-(2**63), 2**62), "from the beginning", "to the end", "[::1]"),
    ],
)
@pytest.mark.filterwarnings("ignore:Truncating the start/stop/step of slice")
def test_an_open_bound_of_a_slice_is_said_in_words(make, start, end, form):
    graph = lens.graph(make())
    (node,) = [node for node in graph.nodes if node.name == "SliceBackward0"][:1]
    said = {fact.words for fact in facts(graph, node, True) if fact.kind == "attribute"}
    assert {f"start = {start}", f"end = {end}"} <= said
    assert any(form in fact.brief for fact in facts(graph, node, True))
    assert not re.search(r"\d{18}", str(graph) + graph.to_dot())
    assert all(text == "None" or int(text) for name, text in node.attributes if name == "end")


def test_an_open_bound_is_said_where_there_is_no_form_and_its_number_is_kept():
    x = torch.ones(4, requires_grad=True)
    (gradient,) = torch.autograd.grad((x[1:] ** 2).sum(), x, create_graph=True)
    graph = lens.graph(gradient)
    node = graph.nodes[0]
    assert node.name == "SliceBackwardBackward0"
    assert dict(node.attributes)["end"] == str(2**63 - 1)
    assert "dim = 0, end = to the end, start = 1, step = 1" in lines(graph, 0)
    assert "end = to the end" in str(graph)


def test_a_number_that_is_no_bound_stays_as_it_is():
    x = torch.ones(2, 3, requires_grad=True)
    loss = torch.nn.functional.cross_entropy(x, torch.tensor([0, 1]), ignore_index=-(2**63))
    assert f"ignore_index = -{2**63}" in str(lens.graph(loss))
    assert "dim = -1" in str(lens.graph(x.cumsum(-1)))
