from . import envelope as envelope, findings as findings
from ._context import (
    MAX_RESULT_CHARS, Admitted, CallCost, Capped, Compacted, Count, Excerpt, Meter, MeteredCall, Outputs, Tokens, Usage,
    WireFormat, cap, compact, count, read, read_tool,
)  # fmt: skip
from ._errors import (
    EndmarkError, InternalError, InvalidInput, InvalidReply, Malformed, MergeError, NotAdmitted, NotResumed,
    ResumeExhausted,
)  # fmt: skip
from ._guard import GuardFinding, GuardReport, guard
from ._native import VERSION as __version__
from ._recovery import (
    MAX_CORRECTION_ATTEMPTS, MAX_RESUME_ATTEMPTS, Ask, AskFailed, Correction, Join, Log, Outcome, Pipeline, Reply, Request, StopMeaning,
    resume_if_truncated, resume_if_truncated_async, stop_meaning,
)  # fmt: skip
from ._texts import (
    AskedFrom, Completed, Detection, Format, Merged, Seam, Stitched, Unfinished, build_resume_prompt, complete, detect,
    detect_truncation, merge_chunks, stitch,
)  # fmt: skip

__all__ = [
    "MAX_CORRECTION_ATTEMPTS", "MAX_RESULT_CHARS", "MAX_RESUME_ATTEMPTS", "Admitted", "Ask", "AskFailed", "AskedFrom", "CallCost",
    "Capped", "Compacted", "Completed", "Correction", "Count", "Detection", "EndmarkError", "Excerpt", "Format", "GuardFinding",
    "GuardReport", "InternalError", "InvalidInput", "InvalidReply", "Join", "Log", "Malformed", "MergeError", "Merged", "Meter",
    "MeteredCall", "NotAdmitted", "NotResumed", "Outcome", "Outputs", "Pipeline", "Reply", "Request", "ResumeExhausted", "Seam",
    "Stitched", "StopMeaning", "Tokens", "Unfinished", "Usage", "WireFormat", "__version__", "build_resume_prompt", "cap", "compact", "complete",
    "count", "detect", "detect_truncation", "envelope", "findings", "guard", "merge_chunks", "read", "read_tool",
    "resume_if_truncated", "resume_if_truncated_async", "stitch", "stop_meaning",
]  # fmt: skip
