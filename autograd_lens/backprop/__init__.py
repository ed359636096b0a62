"""One real backward, watched: the verb ``record_backward`` and its result.

======================  ===========================================================
``recording``           the verb
``recorder``            hooks on every node, and what they note
``steps``               the result: steps, gradients, what was written
``gradient``            a gradient in numbers
``other_threads``       what others do with the same nodes meanwhile
======================  ===========================================================
"""
