#| label: fig-a
x
