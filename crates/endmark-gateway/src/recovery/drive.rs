//! Runs the pipeline, and makes the calls that its steps request.

use endmark_recovery::{Pipeline, PipelineOutcome, PipelineStep};

use super::ask::{Asker, StepFailure};
use crate::reply::{ClientGone, Flow};
use crate::work;

/// Makes the requested calls and forwards their responses until the pipeline is done.
pub(super) async fn run_pipeline(
    mut pipeline: Pipeline,
    asker: &mut Asker<'_>,
    flow: &mut Flow<'_>,
) -> Result<PipelineOutcome, ClientGone> {
    loop {
        match pipeline.next() {
            PipelineStep::Resume(ask) => match asker.resume(&ask, flow).await {
                Ok((reply, join)) => {
                    // Joining must not change bytes that were already forwarded.
                    pipeline.mark_sent(flow.sent_bytes());
                    let _large = work::enter_pool_if_large(reply.text.len()).await;
                    pipeline.accept_continuation(reply, join);
                    let joined =
                        pipeline.pieces().last().and_then(|piece| piece.seam.as_ref()).map(|seam| seam.style);
                    asker.learn(joined, pipeline.is_in_doubt()).await;
                }
                Err(StepFailure::Failed(failure)) => pipeline.note_failure(failure),
                Err(StepFailure::ClientGone) => return Err(ClientGone),
            },
            PipelineStep::Correct(ask) => match asker.correct(&ask, flow).await {
                Ok(reply) => {
                    let _large = work::enter_pool_if_large(reply.text.len()).await;
                    pipeline.accept_correction(reply);
                }
                Err(StepFailure::Failed(failure)) => pipeline.note_failure(failure),
                Err(StepFailure::ClientGone) => return Err(ClientGone),
            },
            PipelineStep::Done(outcome) => return Ok(outcome),
        }
    }
}
