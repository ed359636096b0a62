"""Atlas: what every op of PyTorch's op database saves for its backward, by running it.

``load()`` gives the atlas that is stored with this package, ``run()`` makes one with the PyTorch
that is installed, ``observe(call, *args)`` one entry for a call of your own. An atlas shows itself
as text and as a table that sorts and filters without a kernel.

============  ===================================================
``observe``   runs one call and says what its backward holds
``origins``   which tensor a saved one is, and whether it is an index
``database``  the ops and their samples
``rows``      the atlas as data and as a file (``atlas.json``)
``table``     the atlas as HTML (``table.css``, ``table.js``)
============  ===================================================
"""

from .database import NoDatabase, run
from .observe import KINDS, NoGraph, Observed, observe
from .rows import Atlas, BadAtlas, Row, load

__all__ = [
    "KINDS",
    "Atlas",
    "BadAtlas",
    "NoDatabase",
    "NoGraph",
    "Observed",
    "Row",
    "load",
    "observe",
    "run",
]
