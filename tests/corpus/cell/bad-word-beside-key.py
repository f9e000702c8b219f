#| slow
#| label: fig-a
#| fig-cap: "C"
#| fig-alt: "A"
plot()
