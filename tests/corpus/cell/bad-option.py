#| colour: red
x = 1
