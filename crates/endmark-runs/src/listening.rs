//! Processes the output of an agent while it arrives.

use std::time::{Duration, Instant};

use endmark_guard::{AgentStream, AgentUsage, AttemptJudgement, Notice, Run, RunEvent, RunStep};
use endmark_process::{ListenerDecision, OutputListener, OutputTranscript};

use crate::record::{LiveRunRecord, RecordWriter};
use crate::task::{RunObserver, Task};

/// A run that has not ended: its state machine, its record and its observer.
pub(crate) struct RunInProgress<'a> {
    pub(crate) task: &'a Task,
    pub(crate) run: Run,
    pub(crate) live_record: LiveRunRecord,
    pub(crate) writer: Option<RecordWriter>,
    pub(crate) watch: &'a mut dyn RunObserver,
    pub(crate) started_at: Instant,
}

impl RunInProgress<'_> {
    /// Passes an event to the state machine. Records and reports the notices that it returns.
    pub(crate) fn handle(&mut self, event: RunEvent) {
        let notices = self.run.handle(event);
        self.report_notices(&notices);
    }

    /// Records the state of the run, and reports these notices.
    pub(crate) fn report_notices(&mut self, notices: &[Notice]) {
        self.live_record.copy_state(&self.run);
        self.live_record.set_seconds(self.seconds());
        let events: Vec<_> = notices.iter().map(|notice| self.live_record.event(*notice)).collect();
        if let Some(writer) = &self.writer {
            writer.enqueue(&self.live_record, &events);
        }
        let report = self.live_record.report();
        for event in &events {
            self.watch.report_event(&report, event);
        }
    }

    /// Returns the duration of the run. It includes the time before the run was resumed.
    pub(crate) fn duration(&self) -> Duration {
        let before = self.task.resumed.as_ref().map_or(0, |taken_up| taken_up.before.seconds);
        Duration::from_secs(before) + self.started_at.elapsed()
    }

    /// Returns the duration of the run in whole seconds.
    pub(crate) fn seconds(&self) -> u64 {
        self.duration().as_secs()
    }
}

/// Reads the output of one attempt while it arrives.
pub(crate) struct AttemptListener<'s, 'a> {
    pub(crate) run_in_progress: &'s mut RunInProgress<'a>,
    pub(crate) stream: AgentStream,
    /// Number of requests that the run's gateway had received before the attempt.
    requests_before: u64,
    output: Option<OutputTranscript>,
    errors: Option<OutputTranscript>,
    last_usage: AgentUsage,
}

impl<'s, 'a> AttemptListener<'s, 'a> {
    pub(crate) fn new(scene: &'s mut RunInProgress<'a>, stream: AgentStream) -> Self {
        let [output, errors] = ["out", "err"].map(|ending| create_transcript(scene, ending));
        let last_usage = AgentUsage::default();
        let received_before = scene.task.gateway.as_ref().map_or(0, |between| between.request_count());
        Self { run_in_progress: scene, stream, requests_before: received_before, output, errors, last_usage }
    }

    /// Completes the transcripts. Returns the agent's stream, and the number of requests to the gateway
    /// before the attempt.
    pub(crate) fn finish(self) -> (AgentStream, u64) {
        for transcript in [self.output, self.errors].into_iter().flatten() {
            if let Err(error) = transcript.finish() {
                self.run_in_progress
                    .watch
                    .warn(&format!("the agent's output was not saved in full: {error}"));
            }
        }
        (self.stream, self.requests_before)
    }

    fn note_usage(&mut self) {
        if *self.stream.usage() == self.last_usage {
            return;
        }
        self.last_usage = self.stream.usage().clone();
        let RunInProgress { task, run, live_record: sheet, .. } = &mut *self.run_in_progress;
        sheet.set_session(&self.stream);
        if let Some(model) = &self.last_usage.model {
            run.learn_limit(task.models.find(model).and_then(|model| model.context_tokens));
        }
        let seconds = self.run_in_progress.seconds();
        self.run_in_progress.handle(RunEvent::Used(self.last_usage.clone(), seconds));
    }
}

impl OutputListener for AttemptListener<'_, '_> {
    fn note_start(&mut self, process: Option<u32>) {
        self.run_in_progress.live_record.set_process(process);
        self.run_in_progress.handle(RunEvent::Started);
    }

    fn read_output(&mut self, bytes: &[u8]) -> ListenerDecision {
        if let Some(transcript) = &mut self.output {
            transcript.push(bytes);
        }
        self.stream.push(bytes);
        self.note_usage();
        if self.run_in_progress.run.next_step() == RunStep::Stop
            || judge_bypass(self.run_in_progress.task, &self.stream, self.requests_before).is_some()
        {
            ListenerDecision::Stop
        } else if self.stream.is_over() {
            ListenerDecision::OutputComplete
        } else {
            ListenerDecision::Continue
        }
    }

    fn read_errors(&mut self, bytes: &[u8]) {
        if let Some(transcript) = &mut self.errors {
            transcript.push(bytes);
        }
    }
}

/// Returns a verdict if the agent has bypassed the run's gateway. Returns `None` if it has not, or if the run
/// has no gateway.
///
/// The agent has bypassed the gateway if it reports more model replies than the gateway received requests:
/// the other replies must come from elsewhere.
///
/// The gateway counts a request before it answers it, and the agent reports a reply after it has received it.
/// Therefore an agent that only uses the gateway never reports more replies, regardless of which number is
/// read first.
pub(crate) fn judge_bypass(
    task: &Task,
    stream: &AgentStream,
    received_before: u64,
) -> Option<AttemptJudgement> {
    let received = task.gateway.as_ref()?.request_count().saturating_sub(received_before);
    let reported = stream.model_calls();
    (reported > received).then(|| AttemptJudgement::bypass(reported, received))
}

/// Creates the transcript file of this attempt. If this fails, returns `None` and shows a warning.
fn create_transcript(scene: &mut RunInProgress<'_>, ending: &str) -> Option<OutputTranscript> {
    let folder = scene.task.transcripts.as_ref()?;
    let path = folder.join(format!("{}.{ending}", scene.run.attempt() + 1));
    match OutputTranscript::create(&path, scene.task.max_transcript_bytes) {
        Ok(transcript) => Some(transcript),
        Err(error) => {
            scene.watch.warn(&format!("the agent's output cannot be saved in `{}`: {error}", path.display()));
            None
        }
    }
}
