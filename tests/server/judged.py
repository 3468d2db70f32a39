"""A document that the local judge lets pass, for the tests of the evaluator's doors."""

from __future__ import annotations

GOOD = (
    "# Title\n\nIt sorts the files of a folder by their kind. Pictures go into one folder, letters "
    "into another. What it does not know stays where it is. A file with the same name gets a "
    "number. Nothing is ever deleted. Each move is printed before it is made. Say undo, and "
    "everything is back in its old place. Folders are left alone, and so is everything that begins "
    "with a dot. The last run is written down beside the files, so that a friend can follow it. "
    "On a full disk it stops before the first move and says how much room is missing."
    "\n\n## Usage\n\n- run it\n"
)
