//! `demo`: every reply is cut without Endmark and complete through it, and the log shows the recoveries.

use crate::run::TestFolder;

#[test]
fn demo_replies_are_cut_directly_and_whole_through_endmark() {
    let run = TestFolder::new().run(&["demo", "--json"]);
    assert_eq!(run.code, 0, "{}", run.output);
    let envelope = run.envelope();
    let scenes = envelope["data"]["scenes"].as_array().unwrap();
    assert_eq!(scenes.len(), 4);
    for scene in scenes {
        let text = |way: &str| scene[way]["text"].as_str().unwrap().to_owned();
        assert_eq!(scene["directly"]["finish_reason"], "length");
        assert_ne!(scene["through_endmark"]["finish_reason"], "length");
        let (cut, whole) = (text("directly"), text("through_endmark"));
        assert!(whole.len() > cut.len() && whole.starts_with(&cut), "{cut} … {whole}");
        assert!(!scene["seams"].as_array().unwrap().is_empty(), "{scene}");
    }
    let log = envelope["data"]["log"].as_array().unwrap();
    assert!(log.len() == 4 && log.iter().all(|row| row["final_status"] == "RESOLVED"), "{log:?}");
}

#[test]
fn the_demo_prints_both_replies_and_the_log() {
    let run = TestFolder::new().run(&["demo"]);
    assert_eq!((run.code, run.errors.as_str()), (0, ""));
    for words in [
        "cut, finish_reason length",
        "whole, finish_reason stop",
        "∎",
        "OUTCOME",
        "resumed",
        "endmark serve --upstream",
    ] {
        assert!(run.output.contains(words), "{words} in {}", run.output);
    }
}
