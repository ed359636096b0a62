"""Does the book still say the truth elsewhere: on another PyTorch, another processor, on Colab?

    python -m tools.canary --torch 2.15.0 | --torch newest | --colab

``environments`` makes an environment, ``rerun`` runs a notebook in it and says what differs from
what is stored, ``explained`` knows which differences are known, ``report`` words the result.
"""
