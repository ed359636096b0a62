"""The atlas: the stored file is what runs here, and what PyTorch's own formulas say."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import replace

import pytest
import torch
from derivatives import needs

from autograd_lens import atlas
from autograd_lens.atlas.database import _without_word_of_cuda, op_database
from autograd_lens.atlas.observe import HIDDEN
from autograd_lens.atlas.origins import is_index
from autograd_lens.atlas.rows import details
from autograd_lens.atlas.table import notes

STORED = atlas.load()
expecttest = pytest.importorskip("expecttest", reason="PyTorch's op database needs it")


DATABASE = pytest.mark.large(
    "the atlas' notebook observes calls anew, and TestObserve what a node holds"
)


@pytest.fixture(scope="session")
def fresh():
    """The whole database, run once."""
    return atlas.run()


class TestStored:
    @DATABASE
    def test_is_what_runs_here(self, fresh):
        if fresh.torch != STORED.torch:
            pytest.skip(f"stored for torch {STORED.torch}, this is {fresh.torch}: make atlas-diff")
        for name, row in fresh.ops.items():
            assert STORED.ops.get(name) == row
        assert fresh == STORED, "run `make atlas`"

    def test_is_the_text_that_would_be_written(self):
        assert atlas.load().to_json() == STORED.to_json()
        again = json.loads(STORED.to_json())
        assert list(again["ops"]) == sorted(again["ops"])
        assert all("\n" not in line for line in STORED.to_json().splitlines())

    @DATABASE
    def test_has_every_op(self, fresh):
        assert set(fresh.ops) == set(op_database())
        assert len(fresh.recorded()) >= 500
        assert all(row.reason for row in fresh.ops.values() if row.seen is None)

    @DATABASE
    def test_differentiable_ops_run(self, fresh):
        """Those of which the database says so and that record nothing here, by reason."""
        silent = {
            name: row.reason
            for name, row in fresh.ops.items()
            if row.seen is None and op_database()[name].info.supports_autograd
        }
        itself = {name for name, reason in silent.items() if reason == "returns its input itself"}
        elsewhere = {name for name, reason in silent.items() if "on the CPU" in reason}
        assert itself >= {"contiguous", "positive"}
        quiet = {name for name, reason in silent.items() if "without a node" in reason}
        assert all(op_database()[name].in_place for name in quiet)
        assert set(silent) == itself | elsewhere | quiet
        assert len(silent) < 13

    def test_has_the_in_place_forms(self):
        """Those of the database; what they save is told by PyTorch itself on the right."""
        forms = {name: op for name, op in op_database().items() if op.in_place}
        declared = {op.info.name for op in op_database().values() if op.info.inplace_variant}
        assert {op.info.name for op in forms.values()} == {
            name for name in declared if not name.endswith("_")
        }
        x = torch.ones(3, requires_grad=True)
        for name, write in [
            ("nn.functional.leaky_relu_", torch.nn.functional.leaky_relu_),
            ("exp_", torch.exp_),
            ("sin_", torch.sin_),
            ("add_", lambda y: y.add_(1)),
        ]:
            y = write(x.clone())
            fields = [field for field in dir(y.grad_fn) if field.startswith("_raw_saved_")]
            ours = [getattr(y.grad_fn, field).data for field in fields]
            result = [one for one in ours if one.data_ptr() == y.data_ptr()]
            words = ["output"] * len(result) + ["intermediate"] * (len(ours) - len(result))
            assert list(STORED[name].seen.kinds) == words, name
            assert [node for node, _ in STORED[name].seen.nodes] == [y.grad_fn.name()]
            assert STORED[name].seen.view == "input"
        assert STORED["nn.functional.leaky_relu"].kinds == "input"


# Where running says something else than the database, and why.
NO_IN_PLACE_FORMULA = "its formula only raises; the database asks the other form"
CONSTANT = "fills with a constant, and the database asks the other form, which returns booleans"
TWICE = {
    "acosh_": NO_IN_PLACE_FORMULA,
    "asinh_": NO_IN_PLACE_FORMULA,
    "atanh_": NO_IN_PLACE_FORMULA,
    "nn.functional.silu_.complex": "the other form refuses complex numbers, this one does not",
    "nn.functional.ctc_loss": "its second derivative is not implemented; the database skips it",
    "nn.functional.linear_cross_entropy.chunked_none": "writes to out=, which is not recorded",
    "sparse.sampled_addmm": "its gradient is sparse and no COO tensor; the database makes it dense",
}
FORWARD = {
    "acosh_": NO_IN_PLACE_FORMULA,
    "asinh_": NO_IN_PLACE_FORMULA,
    "atanh_": NO_IN_PLACE_FORMULA,
    "nn.functional.rrelu_": "the database asks the other form",
    "nn.functional.silu_.complex": "the other form refuses complex numbers, this one does not",
    "eq_": CONSTANT,
    "ge_": CONSTANT,
    "gt_": CONSTANT,
    "le_": CONSTANT,
    "lt_": CONSTANT,
    "ne_": CONSTANT,
    "bfloat16": "the database can't check so few digits",
    "cfloat": "the database can't check so few digits",
    "chalf": "the database can't check so few digits",
    "float": "the database can't check so few digits",
    "half": "the database can't check so few digits",
    "linalg.lstsq": "works, and is not declared",
    "native_layer_norm": "works, and is not declared",
    "nn.functional.scaled_dot_product_attention": "its composite form has it, its fused forms not",
    "normal": "the tangent is zero",
    "normal.number_mean": "the tangent is zero",
}


def _only_with_the_stored_version() -> None:
    """Another version's database has other ops."""
    if not torch.__version__.startswith(STORED.torch):
        pytest.skip(f"the database of {torch.__version__} is not that of {STORED.torch}")


@pytest.mark.large("the stored table is held to the formulas of derivatives.yaml")
class TestAgainstTheDatabase:
    """What runs is compared with what the database declares, which the atlas never reads."""

    def test_twice(self):
        _only_with_the_stored_version()
        differs = {
            row.op
            for row in STORED.recorded()
            if row.seen.double is not None
            and row.seen.double != op_database()[row.op].info.supports_gradgrad
        }
        assert differs == set(TWICE)

    def test_forward_mode(self):
        _only_with_the_stored_version()
        differs = {
            row.op
            for row in STORED.recorded()
            if row.seen.forward != op_database()[row.op].info.supports_forward_ad
        }
        assert differs == set(FORWARD)


# Ops of one node whose saved tensors are not what the formulas, read with the arguments and results
# of the op itself, make expect. By reason: the op, and the fields it explains.
CALLS_ANOTHER = "hands the work to an op that returns more than it does, and takes other arguments"
MAKES_ONE = "makes a tensor of what was no tensor, or of a random number, and hands it on"
ORDER = "its arguments come in another order"
EXPLAINED = {
    CALLS_ANOTHER: {
        "_batch_norm_with_update": "result3",
        "linalg.det": "LU pivots",
        "linalg.eigvals": "eigenvectors",
        "linalg.eigvalsh": "eigenvectors",
        "linalg.slogdet": "LU pivots",
        "linalg.solve": "LU pivots",
        "linalg.solve_ex": "LU pivots",
        "linalg.svdvals": "S U Vh",
        "masked.median": "indices",
        "msort": "indices",
        "nn.functional.batch_norm": "result1 result2 running_mean running_var weight",
        "nn.functional.embedding_bag": "result1 result2 result3",
        "nn.functional.fractional_max_pool2d": "result1",
        "nn.functional.fractional_max_pool3d": "result1",
        "nn.functional.group_norm": "result1 result2",
        "nn.functional.layer_norm": "result1 result2",
        "nn.functional.logsigmoid": "buffer",
        "nn.functional.multilabel_margin_loss": "is_target",
        "nn.functional.nll_loss": "total_weight",
        "sparse.mm.reduce": "result1",
    },
    MAKES_ONE: {
        "__getitem__": "indices",
        "max_pool2d_with_indices_backward": "indices",
        "nn.functional.dropout": "other self",
        "nn.functional.dropout2d": "other self",
        "nn.functional.dropout2d_": "other self",
        "nn.functional.dropout_": "other self",
        "nn.functional.rrelu": "noise",
        "nn.functional.rrelu_": "noise",
    },
    ORDER: {
        "__rmatmul__": "self tensor",
        "__rmod__": "other self",
        "__rpow__": "exponent self",
        "lu_solve": "LU pivots",
        "where": "condition",
    },
    "residuals are named in a formula only to ask whether they are there": {
        "linalg.lstsq": "residuals",
        "linalg.lstsq.grad_oriented": "residuals",
    },
}


def disagreements(row: atlas.Row) -> dict[str, str]:
    """Fields for which a row says something else than the formulas of its nodes, and what."""
    found = {}
    alone = len(row.seen.nodes) == 1
    partly = not alone or any(one.endswith(" fixed") for one in row.inputs)
    for node, saved in row.seen.nodes:
        need = needs().get(node.removesuffix("_copy"))
        if saved == HIDDEN:
            continue
        if need is None:
            if saved and "GeneratedBackward" not in node:  # Python code; has no formula
                found[min(saved)] = f"{node} has no formula, and saves it"
            continue
        fields = {re.sub(r"\[\d+\]$", "", place): what for place, what in saved.items()}
        for name in sorted(set(fields) - need.all):
            found[name] = f"{node} saves it, and no formula uses it"
        for name in sorted(need.all - set(fields)):
            # What only the gradient of another input needs is not saved when nobody asks for it.
            of_all = all(name in uses for uses in need.by_input.values())
            if not (name in need.optional or (partly and not of_all)):
                found[name] = f"{node} does not save it, and a formula uses it"
        if alone:
            found |= {
                name: f"{node} saves {what}"
                for name, what in fields.items()
                if name in need.all and not _right(name, what, need, row)
            }
    return found


def _right(name: str, what: str, need, row: atlas.Row) -> bool:
    """Of an op with one node: named like an argument it is that input, like a result that output.

    Which input can be told where the op takes the tensors that its node names, and no others.
    """
    word, number = what.removeprefix("view of ").split()[:2]
    if row.seen.view == "input" and name == "self":  # overwritten, so the node keeps a copy of it
        return word == "intermediate"
    if name in need.outputs:
        return (word, number) == ("output", str(need.outputs.index(name)))
    if len(need.inputs) == len(row.inputs):
        return (word, number) == ("input", str(need.inputs.index(name)))
    return word == "input"


def changed(row: atlas.Row, saved: dict[str, str]) -> atlas.Row:
    """The row with other saved tensors in its first node."""
    (node, _), *others = row.seen.nodes
    return replace(row, seen=replace(row.seen, nodes=((node, saved), *others)))


class TestAgainstTheFormulas:
    """`derivatives.yaml` says by name what a node needs; running says which tensor it holds."""

    def test_they_agree(self):
        reasons = {
            op: set(fields.split()) for table in EXPLAINED.values() for op, fields in table.items()
        }
        found = {row.op: disagreements(row) for row in STORED.recorded()}
        if not torch.__version__.startswith(STORED.torch):
            pytest.skip(f"the formulas of {torch.__version__} are not those of {STORED.torch}")
        for op, problems in found.items():
            assert set(problems) == reasons.get(op, set()), (op, problems)

    def test_most_are_compared(self):
        nodes = [node for row in STORED.recorded() for node, _ in row.seen.nodes]
        known = [node for node in nodes if node.removesuffix("_copy") in needs()]
        assert len(known) > 0.97 * len(nodes)
        explained = sum(map(len, EXPLAINED.values()))
        assert explained < 0.06 * len(STORED.recorded())

    @pytest.mark.parametrize("spoil", ["lost", "swapped", "more", "moved"])
    def test_a_row_that_is_wrong_is_noticed(self, spoil):
        """The negative control, on every row of one node that saves something."""
        explained = {op for table in EXPLAINED.values() for op in table}
        rows = [
            row
            for row in STORED.recorded()
            if len(row.seen.nodes) == 1 and row.seen.nodes[0][1] and row.op not in explained
        ]
        rows = [row for row in rows if SPOIL[spoil](row) != row]
        missed = [row.op for row in rows if not disagreements(SPOIL[spoil](row))]
        partial = {row.op for row in rows if "lost" == spoil and _may_lack(row)}
        assert len(rows) > 200
        assert len(missed) < 0.05 * len(rows)
        assert set(missed) <= partial or spoil == "moved"  # where it may be any input


def _may_lack(row) -> bool:
    """Whether the field that is taken away might be missing with reason."""
    ((node, saved),) = row.seen.nodes
    known = needs().get(node.removesuffix("_copy"))
    if known is None:  # another version has no such formula
        return True
    return min(saved) in known.optional or any(one.endswith(" fixed") for one in row.inputs)


def _lost(row):
    saved = dict(row.seen.nodes[0][1])
    del saved[min(saved)]
    return changed(row, saved)


def _swapped(row):
    other = {"input": "output", "output": "input", "intermediate": "output 0"}
    saved = {
        place: re.sub("input|output|intermediate", lambda match: other[match[0]], what)
        for place, what in row.seen.nodes[0][1].items()
    }
    return changed(row, saved)


def _more(row):
    return changed(row, row.seen.nodes[0][1] | {"nothing_of_this_name": "input 0 float64 (5,)"})


def _moved(row):
    saved = {
        place: re.sub(r"put (\d+)", lambda match: f"put {int(match[1]) + 1}", what)
        for place, what in row.seen.nodes[0][1].items()
    }
    return changed(row, saved)


SPOIL = {"lost": _lost, "swapped": _swapped, "more": _more, "moved": _moved}


class TestObserve:
    def test_what_a_node_holds(self):
        x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        seen = atlas.observe(torch.mul, x, w)
        assert seen.nodes == (
            ("MulBackward0", {"other": "input 1 float32 (3,)", "self": "input 0 float32 (3,)"}),
        )
        assert (seen.kinds, seen.bytes, seen.output_bytes) == (("input",), {"input": 24}, 12)
        assert (seen.view, seen.backward, seen.double, seen.forward) == ("new", True, True, True)

    def test_a_copy_is_no_input(self):
        x = torch.ones(3, requires_grad=True)
        assert atlas.observe(torch.exp, x).kinds == ("output",)
        assert atlas.observe(lambda x: x.exp() + 1, x).kinds == ("intermediate",)
        assert atlas.observe(lambda x: x.clone().sin(), x).kinds == ("intermediate",)

    def test_another_reading_is_a_view(self):
        x = torch.ones(3, 3, requires_grad=True)
        (_, saved), _ = atlas.observe(lambda x: x.t().sin(), x).nodes
        assert saved == {"self": "view of input 0 float32 (3, 3)"}
        assert atlas.observe(torch.t, x).view == "view"
        assert atlas.observe(lambda x: (x, x.t()), x).view == "input or view"

    def test_storages_are_counted_once(self):
        x = torch.ones(3, requires_grad=True)
        assert atlas.observe(lambda x: x * x, x).bytes == {"input": 12}
        assert atlas.observe(lambda x: x[:2].sin(), x).bytes == {"input": 12}

    def test_backward_that_raises_or_can_not_go_on(self):
        a = torch.tensor([1.0, 2.0], requires_grad=True)
        raises = atlas.observe(torch.igamma, a, a.detach().clone().requires_grad_())
        assert (raises.backward, raises.double) == (False, False)
        once = atlas.observe(torch.nn.functional.hardsigmoid, a)
        assert (once.backward, once.double) == (True, False)
        assert atlas.observe(torch.sign, a).double is None
        assert not atlas.observe(torch.cdist, a[None], a[None]).forward

    def test_own_functions_are_read_too(self):
        class Keeps(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                ctx.beside = x * 2
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                return grad

        seen = atlas.observe(Keeps.apply, torch.ones(2, requires_grad=True))
        assert seen.kinds == ("input", "intermediate")
        assert set(seen.nodes[0][1]) == {"tensors[0]", "ctx.beside"} or len(seen.nodes[0][1]) == 2

    def test_parameters_of_a_module_are_told(self):
        """They lie in memory that somebody holds, whether they are views or frozen."""
        net = torch.nn.Linear(3, 3)
        x = torch.ones(2, 3, requires_grad=True)
        for call in (net, lambda x: net(x)):
            seen = atlas.observe(call, x)
            assert (seen.kinds, seen.bytes) == (
                ("input", "parameter"),
                {"input": 24, "parameter": 36},
            )
        saved = atlas.observe(net, x).nodes[0][1]
        assert saved["mat2"] == "view of parameter weight float32 (3, 3)"
        net.requires_grad_(False)
        assert atlas.observe(net, x).bytes == {"parameter": 36}

    def test_parameters_go_in_like_inputs(self):
        net = torch.nn.Linear(3, 3)
        seen = atlas.observe(net, torch.ones(2, 3))
        assert (seen.kinds, seen.bytes) == (("input",), {"input": 24})
        assert (seen.backward, seen.double, seen.forward) == (True, True, True)
        norm = atlas.observe(torch.nn.BatchNorm1d(3).eval(), torch.ones(2, 3)).bytes
        assert norm == {"input": 24, "buffer": 24, "parameter": 12, "intermediate": 0}

    def test_what_was_recorded_before_is_no_part_of_the_call(self):
        h = torch.ones(3, requires_grad=True).exp()
        seen = atlas.observe(torch.sin, h)
        assert seen.nodes == (("SinBackward0", {"self": "input 0 float32 (3,)"}),)

    def test_a_node_that_hides_what_it_saves_says_so(self):
        def into_a_view(x):
            y = x.clone()
            y[:500].exp_()
            return y

        x = torch.ones(1000, requires_grad=True)
        seen = atlas.observe(into_a_view, x)
        assert seen.nodes[0] == ("torch::autograd::CopySlices", HIDDEN)
        assert seen.kinds == ("hidden",)
        row = atlas.Row("mine", seen=seen)
        text = "\n".join(details(atlas.Atlas("1.0.0", {}, {}), row))
        assert HIDDEN["hidden"] in text and "hides what it saves" in notes(row)
        many = atlas.observe(torch._foreach_mul, [x], 2.0)
        assert (many.kinds, many.nodes[0][1]) == (("hidden",), HIDDEN)

    def test_only_what_chooses_elements_is_an_index(self):
        x = torch.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, 9.0]], requires_grad=True)
        target = torch.tensor([0, 2])
        for call, arguments in [
            (torch.cov, ()),
            (torch.nanmean, ()),
            (torch.div, (torch.tensor([[1, 2, 3]]),)),
            (torch.pow, (torch.tensor(3),)),
            (torch.nn.functional.mse_loss, (torch.ones(2, 3, dtype=torch.int64),)),
        ]:
            seen = atlas.observe(call, x, *arguments)
            assert "int64" in str(seen.nodes) and "indices" not in seen.kinds, call
        for call, arguments in [
            (torch.gather, (1, torch.zeros(2, 1, dtype=torch.int64))),
            (torch.nn.functional.cross_entropy, (target,)),
            (torch.sort, ()),
            (lambda x: torch.nn.functional.max_pool1d(x, 2), ()),
        ]:
            assert "indices" in atlas.observe(call, x, *arguments).kinds, call

    def test_the_state_of_a_generator_is_no_index(self):
        class Draws(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.state = torch.get_rng_state()
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                return grad

        seen = atlas.observe(Draws.apply, torch.ones(2, requires_grad=True))
        assert seen.kinds == ("intermediate",)

    def test_every_integer_that_an_op_saves_was_thought_of(self):
        """A new one must be put on one side or the other."""
        numbers = set()
        for row in STORED.recorded():
            for node, saved in row.seen.nodes:
                for place, what in saved.items():
                    dtype = re.search(r" (u?int\d+) ", what)
                    if dtype and not is_index(node, place, getattr(torch, dtype[1])):
                        numbers.add(f"{node}.{place.partition('[')[0]}")
        chunked = [one for one in numbers if one.startswith("GeneratedBackwardFor")]
        assert numbers - set(chunked) == {
            "BatchNormWithUpdateBackward0.result3",  # reserved memory
            "DivBackward0.other",  # a count
            "EmbeddingBagBackward0.result2",  # sizes of bags
            "FrexpBackward0.exponent",
            "SegmentReduceBackward0.lengths",
        }
        assert len(chunked) <= 1  # a Python Function, whose places have no names

    @pytest.mark.parametrize(
        ("call", "argument", "why"),
        [
            (torch.exp, torch.ones(2), "no input that requires grad"),
            (torch.ones, 2, "takes no tensor"),
            (torch.argmax, torch.ones(2, requires_grad=True), "integers or booleans"),
            (torch.zeros_like, torch.ones(2, requires_grad=True), "new numbers"),
            (lambda x: x, torch.ones(2, requires_grad=True), "its input itself"),
            (lambda x: None, torch.ones(2, requires_grad=True), "returns no tensor"),
        ],
    )
    def test_no_graph_has_a_reason(self, call, argument, why):
        with pytest.raises(atlas.NoGraph, match=why):
            atlas.observe(call, argument)


class TestFile:
    def spoiled(self, tmp_path, spoil):
        plain = json.loads(STORED.to_json())
        spoil(plain)
        path = tmp_path / "atlas.json"
        path.write_text(json.dumps(plain), encoding="utf-8")
        return path

    def test_what_is_written_is_read(self, tmp_path):
        path = tmp_path / "atlas.json"
        path.write_text(STORED.to_json(), encoding="utf-8")
        assert atlas.load(path) == STORED

    @pytest.mark.parametrize(
        ("spoil", "says"),
        [
            (lambda plain: plain.pop("ops"), "holds no atlas"),
            (lambda plain: plain["ops"]["mul"].pop("bytes"), "op 'mul' lacks 'bytes'"),
            (lambda plain: plain["ops"]["mul"].update(price=1), "'mul' has an unknown 'price'"),
            (lambda plain: plain["ops"]["mul"].update(kinds=["all"]), "'mul' saves 'all'"),
            (lambda plain: plain.update(ops=[]), "holds no atlas"),
        ],
    )
    def test_another_file_is_refused(self, tmp_path, spoil, says):
        with pytest.raises(atlas.BadAtlas, match=says) as refused:
            atlas.load(self.spoiled(tmp_path, spoil))
        assert "make atlas" in str(refused.value)

    def test_no_file_and_no_json(self, tmp_path):
        with pytest.raises(atlas.BadAtlas, match="No such file"):
            atlas.load(tmp_path / "none.json")
        (tmp_path / "half.json").write_text(STORED.to_json()[:1000], encoding="utf-8")
        with pytest.raises(atlas.BadAtlas, match="is not JSON"):
            atlas.load(tmp_path / "half.json")

    def test_unknown_ops_are_named(self):
        with pytest.raises(KeyError, match="'mull'"):
            atlas.run(["mul", "mull"])

    def test_a_missing_database_says_what_to_install(self, monkeypatch):
        module = "torch.testing._internal.common_methods_invocations"
        monkeypatch.setitem(__import__("sys").modules, module, None)
        with pytest.raises(atlas.NoDatabase, match="pip install expecttest"):
            atlas.run(["mul"])


def test_one_message_is_left_out_while_the_database_is_imported_and_no_other():
    log = logging.getLogger("torch.utils.cpp_extension")
    records = []
    kept = logging.Handler()
    kept.emit = records.append
    log.addHandler(kept)
    try:
        with _without_word_of_cuda():
            log.warning("No CUDA runtime is found, using CUDA_HOME='%s'", "/usr/local")
            log.warning("something else")
        log.warning("No CUDA runtime is found, using CUDA_HOME='%s'", "afterwards")
    finally:
        log.removeHandler(kept)
    said = [record.getMessage() for record in records]
    assert said == ["something else", "No CUDA runtime is found, using CUDA_HOME='afterwards'"]
