//! Processes an agent's output as it arrives.

use std::time::{Duration, Instant};

use endmark_guard::{AgentStream, AttemptJudgement, Notice, Run, RunEvent, RunStep, Usage};
use endmark_process::{Listener, ListenerDecision, Transcript};

use crate::record::{RecordWriter, RunSheet};
use crate::task::{Task, Watch};

/// An active run: the state machine, its record, and the observer.
pub(crate) struct RunInProgress<'a> {
    pub(crate) task: &'a Task,
    pub(crate) run: Run,
    pub(crate) sheet: RunSheet,
    pub(crate) writer: Option<RecordWriter>,
    pub(crate) watch: &'a mut dyn Watch,
    pub(crate) began: Instant,
}

impl RunInProgress<'_> {
    /// Passes an event to the state machine, then records and reports the resulting notices.
    pub(crate) fn handle(&mut self, event: RunEvent) {
        let notices = self.run.handle(event);
        self.tell(&notices);
    }

    /// Records the state of the run, and reports the notices.
    pub(crate) fn tell(&mut self, notices: &[Notice]) {
        self.sheet.follow(&self.run);
        self.sheet.set_seconds(self.seconds());
        let events: Vec<_> = notices.iter().map(|notice| self.sheet.event(*notice)).collect();
        if let Some(desk) = &self.writer {
            desk.put(&self.sheet, &events);
        }
        let report = self.sheet.report();
        for event in &events {
            self.watch.report_event(&report, event);
        }
    }

    /// Returns the duration of the run, including the time before it was resumed.
    pub(crate) fn took(&self) -> Duration {
        let before = self.task.resumed.as_ref().map_or(0, |taken_up| taken_up.before.seconds);
        Duration::from_secs(before) + self.began.elapsed()
    }

    /// Returns the same duration in whole seconds.
    pub(crate) fn seconds(&self) -> u64 {
        self.took().as_secs()
    }
}

/// Reads the output of one attempt.
pub(crate) struct AttemptListener<'s, 'a> {
    pub(crate) scene: &'s mut RunInProgress<'a>,
    pub(crate) stream: AgentStream,
    /// Number of requests that the run's gateway had received when the attempt began.
    received_before: u64,
    output: Option<Transcript>,
    errors: Option<Transcript>,
    last_usage: Usage,
}

impl<'s, 'a> AttemptListener<'s, 'a> {
    pub(crate) fn new(scene: &'s mut RunInProgress<'a>, stream: AgentStream) -> Self {
        let [output, errors] = ["out", "err"].map(|ending| transcript(scene, ending));
        let last_usage = Usage::default();
        let received_before = scene.task.gateway.as_ref().map_or(0, |between| between.request_count());
        Self { scene, stream, received_before, output, errors, last_usage }
    }

    /// Ends the transcripts. Returns the stream, and the number of requests to the gateway before the attempt.
    pub(crate) fn finish(self) -> (AgentStream, u64) {
        for transcript in [self.output, self.errors].into_iter().flatten() {
            if let Err(error) = transcript.finish() {
                self.scene.watch.warn(&format!("the agent's output was not saved in full: {error}"));
            }
        }
        (self.stream, self.received_before)
    }

    fn note_usage(&mut self) {
        if *self.stream.usage() == self.last_usage {
            return;
        }
        self.last_usage = self.stream.usage().clone();
        let RunInProgress { task, run, sheet, .. } = &mut *self.scene;
        sheet.set_session(&self.stream);
        if let Some(model) = &self.last_usage.model {
            run.learn_limit(task.models.find(model).and_then(|model| model.context_tokens));
        }
        let seconds = self.scene.seconds();
        self.scene.handle(RunEvent::Used(self.last_usage.clone(), seconds));
    }
}

impl Listener for AttemptListener<'_, '_> {
    fn note_start(&mut self, process: Option<u32>) {
        self.scene.sheet.set_process(process);
        self.scene.handle(RunEvent::Started);
    }

    fn read_output(&mut self, bytes: &[u8]) -> ListenerDecision {
        if let Some(transcript) = &mut self.output {
            transcript.push(bytes);
        }
        self.stream.push(bytes);
        self.note_usage();
        if self.scene.run.next_step() == RunStep::Stop
            || judge_bypass(self.scene.task, &self.stream, self.received_before).is_some()
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

/// Returns the end of an attempt whose agent bypassed the run's gateway.
///
/// The agent reports more model replies than the gateway received requests, so the other replies came from elsewhere.
/// `None` if the numbers match or the run has no gateway.
///
/// A gateway counts a request before it answers it, and an agent reports a reply after it received it. So an agent
/// that uses only the gateway never reports more replies, in whatever order the two numbers are read.
pub(crate) fn judge_bypass(
    task: &Task,
    stream: &AgentStream,
    received_before: u64,
) -> Option<AttemptJudgement> {
    let received = task.gateway.as_ref()?.request_count().saturating_sub(received_before);
    let reported = stream.model_calls();
    (reported > received).then(|| AttemptJudgement::bypass(reported, received))
}

/// Returns the transcript file of this attempt, or `None` with a warning if it cannot be created.
fn transcript(scene: &mut RunInProgress<'_>, ending: &str) -> Option<Transcript> {
    let folder = scene.task.transcripts.as_ref()?;
    let path = folder.join(format!("{}.{ending}", scene.run.attempt() + 1));
    match Transcript::create(&path, scene.task.transcript_bytes) {
        Ok(transcript) => Some(transcript),
        Err(error) => {
            scene.watch.warn(&format!("the agent's output cannot be saved in `{}`: {error}", path.display()));
            None
        }
    }
}
