#| eval: {a: [b]}
1
