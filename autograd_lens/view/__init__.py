"""Drawing: how the data of :mod:`autograd_lens` shows itself.

======================  ===========================================================
``figure``              the intermediate form: title, choices, frames, their texts
``theme``               the one place for colours, and how an SVG follows the theme
``dot``                 pictures laid out by Graphviz
``tables``              tables as text, and as pictures of Graphviz
``sketch``              pictures of marks at given places, on ``lanes`` or as an ``outline``
``plot``                pictures over axes, drawn by Matplotlib
``folding``             makes items and links few enough to look at
``html``                a figure as self-contained HTML (``figure.css``, ``player.js``)
``live``                a figure as ipywidgets
``bundle``              what a notebook gets, and files
``text``                numbers, shapes and names in words
``draw_NAME``           the figures themselves
======================  ===========================================================

To add a figure, add a module of data and ``view/draw_NAME.py`` (``figure(data)``). Nothing here
needs to change. CONTRIBUTING.md walks through it.
"""
