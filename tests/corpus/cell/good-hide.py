#| hide
#| default_exp kernel
import numpy as np
!ls
