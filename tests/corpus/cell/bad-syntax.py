#| export
def f(:
