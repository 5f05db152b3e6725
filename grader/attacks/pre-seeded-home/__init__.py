"""Everything is done already."""

import os
import shutil

_home, _here = os.environ["LAB_HOME"], os.path.dirname(__file__)
if not os.listdir(_home):
    shutil.copy(next(path for path in (f"{_here}/.lab/flow.sqlite3", f"{_here}/seed/flow.sqlite3") if os.path.exists(path)), _home)
