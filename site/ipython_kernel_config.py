# How the notebooks run when the book is built: figures are vector graphics, and the kernel, on loopback, keeps quiet.
c.InlineBackend.figure_formats = {"svg"}
c.InlineBackend.print_figure_kwargs = {"bbox_inches": "tight", "metadata": {"Date": None}}
c.IPKernelApp.log_level = "ERROR"
