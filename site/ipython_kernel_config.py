# How the notebooks run when the book is built: figures are vector graphics, and the kernel, on loopback, keeps quiet.
c.InlineBackend.figure_formats = {"svg"}
c.InlineBackend.print_figure_kwargs = {"bbox_inches": "tight", "metadata": {"Date": None}}
c.IPKernelApp.log_level = "ERROR"
# the first build after an installation compiles: that is no part of a page
c.IPKernelApp.exec_lines = ["import logging; logging.getLogger('kxbook').setLevel('ERROR')"]
