#| label: fig-a
#| fig-cap: "It says @lem-a."
#| fig-alt: "A picture."
#| echo: false
%matplotlib inline
plt.plot([1, 2])
