"""Drawing: how the data of :mod:`autograd_lens` shows itself.

======================  ===========================================================
``figure``              the intermediate form: title, choices, frames, their texts
``theme``               the one place for colours, and how an SVG follows the theme
``dot``                 pictures laid out by Graphviz
``tables``              tables as text, and as pictures of Graphviz
``html``                a figure as self-contained HTML (``figure.css``, ``player.js``)
``live``                a figure as ipywidgets
``bundle``              what a notebook gets, and files
``text``                numbers and shapes in words
``draw_NAME``           one module for each data module: the figures themselves
======================  ===========================================================

To add a figure, add ``autograd_lens/NAME.py`` (data) and ``view/draw_NAME.py`` (``figure(data)``);
nothing here needs to change. CONTRIBUTING.md walks through it.
"""
