"""The package as `spark-submit --py-files` takes it."""

from pathlib import Path
from zipfile import ZipFile

import slackwater

PACKAGE = Path(slackwater.__file__).parent


def zipped(archive):
    """Write the package into a zip, without what was compiled."""
    with ZipFile(archive, "w") as packed:
        for file in sorted(PACKAGE.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                packed.write(file, file.relative_to(PACKAGE.parent))
    return archive


def compiled():
    """The kernels that numba keeps beside the package."""
    return sorted((PACKAGE / "kernels" / "__pycache__").glob("*.nb[ci]"))
