"""What a function will work on, as far as it can be known without running it.

Looks at arguments, closures, defaults, the global names that the code mentions, and the object of
a bound method. It follows functions of the same module that the code mentions. It does not find
what is only looked up by a name while the function runs.
"""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch

Found = torch.Tensor | torch.nn.Module | torch.optim.Optimizer

MOST = 10_000
"""A collection with more entries is taken for data and not searched."""


def refuse_what_cant_run(fn: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """Raise TypeError, and say what to pass, if ``fn(*args, **options)`` is a mistake."""
    if isinstance(fn, torch.Tensor) or not callable(fn):
        raise TypeError(
            f"fn must be a function that runs the step, such as "
            f"lambda: model(x).sum().backward(), not {type(fn).__name__}; "
            f"pass the function itself, not what it returned"
        )
    if inspect.iscoroutinefunction(fn) or inspect.isgeneratorfunction(fn):
        raise TypeError(
            "fn must be a plain function: to call an async one, or a generator, runs nothing"
        )
    if isinstance(fn, torch.nn.Module):  # its hooks may change the arguments
        return
    try:
        signature = inspect.signature(fn, follow_wrapped=False)
    except (TypeError, ValueError):  # some builtins have none
        return
    try:
        signature.bind(*args, **options)
    except TypeError as error:
        raise TypeError(
            f"fn can't be called with these arguments: {error}. "
            f"record_memory(fn, a, b=c) calls fn(a, b=c)"
        ) from None


def reach(
    fn: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> Iterator[tuple[str, Found, bool]]:
    """Yield ``(name, object, was it an argument)`` for each tensor, module and optimizer, once."""
    met: dict[int, Any] = {}  # holds the objects, because the id of a freed one is used again
    home = _home(fn)
    given = [(name, value, True) for name, value in _arguments(fn, args, options)]
    pending = [(getattr(fn, "__name__", ""), fn, False), *reversed(given)]
    while pending:
        name, value, argument = pending.pop()
        if id(value) in met:
            continue
        met[id(value)] = value
        if isinstance(value, Found):
            yield name, value, argument
        elif isinstance(value, (Mapping, list, tuple)) and len(value) > MOST:
            continue
        elif isinstance(value, Mapping):
            pending += [(f"{name}[{key!r}]", one, argument) for key, one in value.items()]
        elif isinstance(value, (list, tuple)):
            pending += [(f"{name}[{key}]", one, argument) for key, one in enumerate(value)]
        elif argument and is_dataclass(value):
            pending += [(f"{name}.{one.name}", getattr(value, one.name), True)
                        for one in fields(value) if hasattr(value, one.name)]  # fmt: skip
        elif isinstance(value, functools.partial):
            given = _arguments(value.func, value.args, value.keywords)
            pending += [("", value.func, False), *((name, one, True) for name, one in given)]
        elif callable(value):
            pending += [(name, one, False) for name, one in _behind(value, home)]


def _arguments(
    fn: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    code = getattr(fn, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    if isinstance(fn, types.MethodType):
        names = names[1:]  # the first one is ``self``
    words = [names[k] if k < len(names) else f"args[{k}]" for k in range(len(args))]
    return [*zip(words, args, strict=True), *options.items()]


def _home(fn: Any) -> str:
    """The module in which the function itself is written."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return getattr(fn, "__module__", "")


def _behind(value: Any, home: str) -> list[tuple[str, Any]]:
    """What a function refers to, by the names it uses."""
    if isinstance(value, types.MethodType):
        of_object = getattr(value.__self__, "__dict__", {})
        return [("self", value.__self__), ("", value.__func__), *of_object.items()]
    if not isinstance(value, types.FunctionType):
        return []
    if value.__module__ != home:
        return []  # code of a library, which has many globals
    found = []
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:  # not filled yet
            continue
    codes = [value.__code__]
    for code in codes:  # the list grows by the functions that are defined inside
        codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
        found += [(name, value.__globals__[name]) for name in _globals(code, value.__globals__)]
    defaults = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    return found + [("default", one) for one in defaults]


def _globals(code: types.CodeType, known: Mapping[str, Any]) -> list[str]:
    """Global names that the code reads. ``co_names`` would hold those of attributes too."""
    read = [one.argval for one in dis.get_instructions(code) if one.opname in _READS]
    return [name for name in dict.fromkeys(read) if name in known]


_READS = ("LOAD_GLOBAL", "LOAD_NAME")
