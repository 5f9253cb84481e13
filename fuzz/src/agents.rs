//! Event streams of agents. Splitting a stream must not change its verdict, and a stream without events must
//! not be whole.

use endmark_guard::{Agent, AgentStream, AttemptEnd, AttemptVerdict, ProcessEnd, StopCause};

/// Reads the bytes as a stream of each agent, once in one piece and once in two pieces.
pub fn check(bytes: &[u8]) {
    let end = AttemptEnd { process: ProcessEnd::Exited(0), stop_cause: None };
    for agent in Agent::ALL {
        let mut whole = AgentStream::new(agent);
        whole.push(bytes);
        let judged = whole.finish(end);
        assert!(!judged.evidence.is_empty());
        assert!(agent == Agent::Plain || judged.verdict != AttemptVerdict::Whole || whole.has_events());
        let at = bytes.first().map_or(0, |first| usize::from(*first) * bytes.len() / 256);
        let mut pieces = AgentStream::new(agent);
        pieces.push(&bytes[..at]);
        pieces.push(&bytes[at..]);
        assert_eq!(pieces.finish(end), judged);
        assert_eq!((pieces.usage(), pieces.session()), (whole.usage(), whole.session()));
        let usage = whole.usage().run;
        assert_eq!(usage.total, usage.input.saturating_add(usage.output));
        let stopped = AttemptEnd { process: ProcessEnd::Killed(15), stop_cause: Some(StopCause::Silence) };
        let mut silent = AgentStream::new(agent);
        silent.push(bytes);
        let verdict = silent.finish(stopped).verdict;
        assert!(silent.is_over() || verdict == AttemptVerdict::Stuck);
    }
}
