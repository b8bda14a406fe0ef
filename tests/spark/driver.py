"""A streaming query in a process of its own, to be killed: ``driver.py FOLDER CORES TRIAL``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from slackwater.spark.session import session  # noqa: E402
from spark.cases import TRIALS  # noqa: E402
from spark.streams import finish, sources  # noqa: E402

if __name__ == "__main__":
    folder, cores, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    # Shuffle partitions stay as they are; how tasks and files are laid out does not matter.
    settings = {
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.files.maxPartitionBytes": "16kb" if cores == 1 else "128mb",
        "spark.sql.files.openCostInBytes": "1kb" if cores == 1 else "4mb",
    }
    spark = session("victim", cores, settings)
    joined = TRIALS[name]().stream(sources(spark, folder, per_trigger=2))
    (Path(folder) / "started").touch()
    finish(joined, folder)
