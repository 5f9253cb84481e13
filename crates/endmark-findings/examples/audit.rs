//! Measures how long it takes to read, merge and report an audit of twelve agents and 300 findings.
//!
//!     cargo run --release --package endmark-findings --example audit [FINDINGS]
//!
//! Pass another number of findings to see how the time grows. The program prints the shortest and the median time of
//! all rounds. The results of two agents are cut, one of them before its name.

#![expect(clippy::print_stdout, reason = "it prints what it measures")]

use std::fmt::Write;
use std::time::{Duration, Instant};

use endmark_findings::{DeliveredResult, MergedResults, Team, read};

const AGENTS: usize = 12;
/// The default number of findings.
const DEFAULT_FINDING_COUNT: usize = 300;
const ROUNDS: usize = 51;

/// Typical weaknesses: CWE number, title, source and sink.
const WEAKNESSES: [(u32, &str, &str, &str); 12] = [
    (89, "SQL built from a request parameter", "request parameter `name`", "`db.execute`"),
    (79, "Markup built from stored text", "comment body", "`render_raw`"),
    (22, "Path taken from a request", "query parameter `file`", "`File::open`"),
    (78, "Shell command built from input", "form field `host`", "`sh -c`"),
    (352, "State changed without a token", "any other site", "`POST /transfer`"),
    (502, "Objects read from the network", "message queue", "`pickle.loads`"),
    (798, "Key written into the code", "constant `KEY`", "`Aes::new`"),
    (862, "No check who asks", "session", "`delete_user`"),
    (918, "Address taken from a request", "query parameter `url`", "`http.get`"),
    (611, "External entities are resolved", "uploaded document", "`parse_xml`"),
    (327, "Broken algorithm", "password", "`md5`"),
    (367, "Checked first, used later", "path in /tmp", "`open`"),
];

fn build_transcript(agent: usize, count: usize) -> String {
    let mut text = String::from("I read the files of my dimensions.\n");
    for turn in [10, 20, 30] {
        let _ = writeln!(
            text,
            "[CHECKPOINT] turn:{turn} findings:{} files_read:{} remaining_dims:dimension {agent}",
            count * turn / 30,
            turn * 3
        );
    }
    let _ = writeln!(
        text,
        "===AGENT_RESULT===\nagent_id: agent-{agent}\ndimensions: dimension {agent}\ndeclared_findings: {count}"
    );
    for number in 1..=count {
        // Every fifth finding is in a file that a neighbouring agent also reports.
        let place = if number % 5 == 0 { agent / 2 } else { agent * 100 + number };
        let (cwe, title, source, sink) = WEAKNESSES[(agent + number) % WEAKNESSES.len()];
        let severity = ["Critical", "High", "Medium", "Low"][number % 4];
        let line = 10 + (number * 37) % 900;
        let _ = write!(
            text,
            "\n[F{number:03}] {title}\nseverity: {severity}\ncwe: CWE-{cwe}\nlocation: src/module_{place}/handler.rs:{line}-{}\n\
             source: {source}\nsink: {sink}\nflow: handler::get -> service::call -> store::find\nevidence:\n  fn find(name: &str) -> Row {{\n  \
             \x20   let query = format!(\"… {{name}} …\");\n      store.run(&query)\n  }}\n",
            line + 9
        );
    }
    text.push_str("===AGENT_RESULT_END===\n");
    match agent {
        // Agent 3 is cut in the middle of its findings, agent 7 before its name.
        3 => text.truncate(text.len() * 2 / 3),
        7 => text.truncate(text.find("agent_id").unwrap_or(0)),
        _ => {}
    }
    text
}

fn time_audit(transcripts: &[String]) -> (usize, usize, Duration) {
    let started = Instant::now();
    let delivered = transcripts.iter().enumerate().flat_map(|(agent, text)| {
        let results = read(text.as_bytes()).results;
        results
            .into_iter()
            .map(move |result| DeliveredResult { origin: format!("agent-{agent}.txt"), result })
    });
    let report = MergedResults::new(&Team::default(), delivered.collect()).report();
    let bytes = report.markdown().len() + report.sarif("0").to_string().len();
    (report.findings().len(), bytes, started.elapsed())
}

fn main() {
    let requested_findings = std::env::args().nth(1).and_then(|number| number.parse().ok());
    let findings = requested_findings.unwrap_or(DEFAULT_FINDING_COUNT) / AGENTS * AGENTS;
    let transcripts: Vec<String> =
        (0..AGENTS).map(|agent| build_transcript(agent, findings / AGENTS)).collect();
    let size: usize = transcripts.iter().map(String::len).sum();
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| time_audit(&transcripts).2).collect();
    times.sort_unstable();
    let (merged, bytes, _) = time_audit(&transcripts);
    println!(
        "{AGENTS} agents, {findings} findings, {size} bytes: {merged} after merging, {bytes} bytes of Markdown and SARIF; \
         shortest {:.2} ms, median {:.2} ms of {ROUNDS} rounds",
        times[0].as_secs_f64() * 1e3,
        times[ROUNDS / 2].as_secs_f64() * 1e3
    );
}
