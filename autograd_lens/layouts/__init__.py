"""How tensors read their storages: the verb ``storage_layout`` and its result.

======================  ===========================================================
``layout``              the verb, and the result
``tensors``             which tensors have a layout, and what is in their memory
``readers``             from an address to the indices that read it
======================  ===========================================================
"""
