"""Detects cut replies of language models, recovers them where possible, and discloses what is missing.

Texts can be str or bytes. Offsets index the value that was passed. No function makes a request, and all functions release the
global interpreter lock. `python -m endmark` runs the program if it is installed with the package.
"""

from __future__ import annotations

import importlib

# The public names of each module, as in the stub. A module is loaded when one of its names is first used.
_NAMES = {
    "_texts": (
        "AskedFrom Completed Detection Format Merged Seam Stitched Unfinished build_resume_prompt complete detect"
        " detect_truncation merge_chunks stitch"
    ),
    "_recovery": (
        "MAX_CORRECTION_ATTEMPTS MAX_RESUME_ATTEMPTS Ask AskFailed Correction Join Log Outcome Pipeline Reply Request"
        " StopMeaning resume_if_truncated resume_if_truncated_async stop_meaning"
    ),
    "_context": (
        "MAX_RESULT_CHARS Admitted CallCost Capped Compacted Count Excerpt Meter MeteredCall Outputs Tokens Usage"
        " WireFormat cap compact count read read_tool"
    ),
    "_guard": "GuardFinding GuardReport guard",
    "_errors": (
        "EndmarkError InternalError InvalidInput InvalidReply Malformed MergeError NotAdmitted NotResumed"
        " ResumeExhausted"
    ),
    "_native": "VERSION",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()} | {"envelope": "", "findings": ""}

__all__ = sorted(_MODULES.keys() - {"VERSION"}) + ["__version__"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    attribute = "VERSION" if name == "__version__" else name
    module = _MODULES.get(attribute)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = importlib.import_module(f"{__name__}.{module or name}")
    value = globals()[name] = getattr(found, attribute) if module else found
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
