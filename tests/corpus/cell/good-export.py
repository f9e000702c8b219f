#| export
def f(x: int) -> int:
    "One."
    return x + 1


class A:
    pass
