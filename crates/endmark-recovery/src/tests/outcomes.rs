//! Tests every outcome of prompts, merging, resuming and the pipeline, each in a test with its name.

mod prompts {
    use crate::{PromptTemplateError, check_prompt_template};

    #[test]
    fn a_template_without_the_token_placeholder_is_refused() {
        assert_eq!(check_prompt_template("Go on!"), Err(PromptTemplateError::NoToken));
    }

    #[test]
    fn a_template_with_an_unknown_placeholder_is_refused() {
        let error = PromptTemplateError::UnknownPlaceholder("{token}".to_owned());
        assert_eq!(check_prompt_template("After {token}"), Err(error));
    }
}

mod merging {
    use crate::{AskedFrom, MergeError, Merged, Outcome, Stitched, merge_chunks, stitch};
    use endmark_text::Format;

    fn merge(initial: &str, continuation: &str, from: AskedFrom) -> Result<Merged, MergeError> {
        merge_chunks(initial, continuation, &Format::Json, from)
    }

    fn stitch_outcome(initial: &str, continuation: &str, from: AskedFrom) -> (Outcome, &'static str, String) {
        let chunks = [initial.to_owned(), continuation.to_owned()];
        let Stitched { outcome, text, error, .. } = stitch(&chunks, &Format::Json, from);
        (outcome, error.map_or("", |error| error.code), text)
    }

    #[test]
    fn merge_returns_a_whole_text() {
        assert_eq!(merge("[1, 2", "3]", AskedFrom::Cut).unwrap().text, "[1, 23]");
        assert_eq!(stitch_outcome("[1, 2", "3]", AskedFrom::Cut), (Outcome::Whole, "", "[1, 23]".to_owned()));
    }

    #[test]
    fn merge_refuses_an_ambiguous_seam() {
        let error = merge("[1, 2", "3]", AskedFrom::Unknown).unwrap_err();
        assert_eq!(error.code(), "ambiguous");
        assert_eq!(
            error.to_string(),
            "the seam is ambiguous: another seam may be right as well as the best one"
        );
        let MergeError::Ambiguous { best, alternatives } = error else { panic!("{error:?}") };
        assert_eq!((alternatives, best.seam.alternatives), (1, 1));
        assert_eq!(
            stitch_outcome("[1, 2", "3]", AskedFrom::Unknown),
            (Outcome::Ambiguous, "ambiguous", best.text.clone())
        );
        let error = |alternatives| MergeError::Ambiguous { best: best.clone(), alternatives }.to_string();
        assert!(error(0).contains("something else may be right"));
        assert!(error(2).contains("2 other seams may be right"));
    }

    #[test]
    fn merge_refuses_a_text_that_is_still_truncated() {
        let error = merge("[1, ", "2, ", AskedFrom::Token).unwrap_err();
        assert_eq!(error.code(), "still_truncated");
        let MergeError::StillTruncated { merged } = error else { panic!("{error:?}") };
        assert_eq!(merged.text, "[1, 2, ");
        let expected = (Outcome::Error, "still_truncated", "[1, 2, ".to_owned());
        assert_eq!(stitch_outcome("[1, ", "2, ", AskedFrom::Token), expected);
    }

    #[test]
    fn merge_refuses_malformed_parts() {
        let error = merge("[1, }", "2]", AskedFrom::Cut).unwrap_err();
        assert_eq!(error.code(), "malformed");
        let MergeError::Malformed { attempt, verified_len, .. } = error else { panic!("{error:?}") };
        assert_eq!((attempt.as_str(), verified_len), ("[1, }2]", 4));
        let expected = (Outcome::Error, "malformed", "[1, ".to_owned());
        assert_eq!(stitch_outcome("[1, }", "2]", AskedFrom::Cut), expected);
    }

    #[test]
    fn merge_refuses_parts_without_a_seam() {
        let error = merge("[1, ", " \n", AskedFrom::Cut).unwrap_err();
        assert_eq!(error.code(), "no_seam");
        let MergeError::NoSeam { attempt, verified_len, .. } = error else { panic!("{error:?}") };
        assert_eq!((attempt.as_str(), verified_len), ("[1,  \n", 4));
        let expected = (Outcome::Error, "no_seam", "[1, ".to_owned());
        assert_eq!(stitch_outcome("[1, ", " \n", AskedFrom::Cut), expected);
    }

    #[test]
    fn merge_refuses_an_empty_continuation() {
        for rest in ["IMPORTANT DATA", ", 2]", "\n\n[2]", "```json\n[2]\n```", "\n```\nIMPORTANT DATA"] {
            for from in [AskedFrom::Cut, AskedFrom::Token, AskedFrom::Unknown] {
                let error = merge("[1]", rest, from).unwrap_err();
                assert_eq!(error.code(), "nothing_to_join", "{rest}");
                let MergeError::NothingToJoin { attempt, verified_len, .. } = error else {
                    panic!("{error:?}")
                };
                assert_eq!((attempt, verified_len), (format!("[1]{rest}"), 3));
                assert_eq!(
                    stitch_outcome("[1]", rest, from),
                    (Outcome::Error, "nothing_to_join", "[1]".to_owned())
                );
            }
        }
        assert_eq!(merge("[1]", "\n```\n", AskedFrom::Token).unwrap().text, "[1]");
        assert_eq!(merge("[1]", " \n[1]\n", AskedFrom::Token).unwrap().text.trim_end(), "[1]");
        let rows = merge_chunks("{\"a\": 1}\n", "{\"a\": 2}", &Format::Jsonl, AskedFrom::Cut);
        assert_eq!(rows.unwrap().text, "{\"a\": 1}\n{\"a\": 2}");
    }

    /// Without a continuation there is no seam, so the result is the verdict of detection.
    #[test]
    fn stitching_one_part_returns_its_verdict() {
        let one = |text: &str| {
            let Stitched { outcome, text, seams, error } =
                stitch(&[text.to_owned()], &Format::Json, AskedFrom::Cut);
            assert!(seams.is_empty());
            (outcome, error.map_or("", |error| error.code), text)
        };
        assert_eq!(one("[1]"), (Outcome::Whole, "", "[1]".to_owned()));
        assert_eq!(one("[1"), (Outcome::Error, "still_truncated", "[1".to_owned()));
        assert_eq!(one("[1}"), (Outcome::Error, "malformed", "[1".to_owned()));
    }
}

mod resuming {
    use crate::{
        AskFailure, AskedFrom, Ending, ExhaustedCause, Join, Reply, ResumeOutcome, ResumePolicy, Stop,
        resume_if_truncated,
    };
    use endmark_text::Format;

    type Answer = Result<(Reply, Join), AskFailure>;

    fn resume(first: Reply, answer: impl Fn() -> Answer) -> ResumeOutcome {
        let mut calls = 0;
        resume_if_truncated(ResumePolicy::default(), Some(Format::Json), first, |_ask| {
            calls += 1;
            assert!(calls < 100, "it does not end");
            answer()
        })
    }

    fn exhausted_cause(answer: impl Fn() -> Answer) -> ExhaustedCause {
        match resume(Reply::with_stop("[1, 2", Stop::Limit), answer) {
            ResumeOutcome::Exhausted(exhausted) => exhausted.cause,
            other => panic!("{other:?}"),
        }
    }

    fn answer_saying(text: &'static str, stop: Stop, join: Join) -> impl Fn() -> Answer {
        move || Ok((Reply::with_stop(text, stop), join))
    }

    #[test]
    fn a_completed_reply_is_returned_as_whole() {
        let outcome =
            resume(Reply::with_stop("[1, 2", Stop::Limit), answer_saying("3]", Stop::Normal, Join::Exact));
        assert!(matches!(outcome, ResumeOutcome::Whole { text, attempts: 1, .. } if text == "[1, 23]"));
    }

    #[test]
    fn a_refused_reply_is_returned_as_passed() {
        let outcome = resume(Reply::with_stop("[1, 2", Stop::Refused), || panic!("it is asked"));
        assert_eq!(outcome, ResumeOutcome::Passed);
    }

    #[test]
    fn a_reply_that_stays_cut_is_returned_as_exhausted() {
        let first = Reply::with_stop("[1, 2", Stop::Limit);
        let ResumeOutcome::Exhausted(end) = resume(first, answer_saying(", 3", Stop::Limit, Join::Exact))
        else {
            panic!("not exhausted")
        };
        assert_eq!((end.attempts, end.merged_raw.as_str(), end.verified_len), (2, "[1, 2, 3, 3", 11));
    }

    #[test]
    fn too_many_attempts_exhaust_a_resume() {
        assert_eq!(exhausted_cause(answer_saying(", 3", Stop::Limit, Join::Exact)), ExhaustedCause::Attempts);
    }

    #[test]
    fn missing_progress_exhausts_a_resume() {
        assert_eq!(exhausted_cause(answer_saying("", Stop::Normal, Join::Exact)), ExhaustedCause::NoProgress);
    }

    #[test]
    fn an_ambiguous_seam_exhausts_a_resume() {
        let unknown = Join::Stitched(AskedFrom::Unknown);
        assert_eq!(exhausted_cause(answer_saying("3]", Stop::Normal, unknown)), ExhaustedCause::Ambiguous);
    }

    #[test]
    fn a_refusal_exhausts_a_resume() {
        assert_eq!(
            exhausted_cause(answer_saying("No.", Stop::Refused, Join::Exact)),
            ExhaustedCause::Refused
        );
    }

    #[test]
    fn a_stop_exhausts_a_resume() {
        let cancelled = || Ok((Reply::broken_off(", 3", Ending::Cancelled), Join::Exact));
        assert_eq!(exhausted_cause(cancelled), ExhaustedCause::Stopped);
    }

    #[test]
    fn a_rejected_call_is_reported() {
        let failure = AskFailure::Rejected("prefill".to_owned());
        assert_eq!(failure.to_string(), "the request was refused: prefill");
        assert_eq!(exhausted_cause(|| Err(failure.clone())), ExhaustedCause::Rejected);
    }

    #[test]
    fn a_lost_call_is_reported() {
        let failure = AskFailure::Lost("reset".to_owned());
        assert_eq!(failure.to_string(), "no answer arrived: reset");
        assert_eq!(exhausted_cause(|| Err(failure.clone())), ExhaustedCause::Attempts);
    }

    #[test]
    fn an_unsuitable_call_is_reported() {
        let failure = AskFailure::Unfit("other whitespace".to_owned());
        assert_eq!(failure.to_string(), "the answer does not continue the text: other whitespace");
        assert_eq!(exhausted_cause(|| Err(failure.clone())), ExhaustedCause::Attempts);
    }

    #[test]
    fn an_unusable_call_is_reported() {
        let failure = AskFailure::Unusable("an image".to_owned());
        assert_eq!(failure.to_string(), "the answer cannot be joined: an image");
        assert_eq!(exhausted_cause(|| Err(failure.clone())), ExhaustedCause::NoProgress);
    }

    #[test]
    fn a_final_failure_is_reported() {
        let failure = AskFailure::Final("no such model".to_owned());
        assert_eq!(failure.to_string(), "the request was refused permanently: no such model");
        assert_eq!(exhausted_cause(|| Err(failure.clone())), ExhaustedCause::Refused);
    }

    #[test]
    fn a_budget_failure_is_reported() {
        let failure = AskFailure::Budget("100 tokens".to_owned());
        assert_eq!(failure.to_string(), "no budget is left: 100 tokens");
        assert_eq!(exhausted_cause(|| Err(failure.clone())), ExhaustedCause::Budget);
    }
}

/// Tests the default policies (PC-5, PC-6), and the defaults of a broken reply.
mod defaults {
    use crate::{Ending, OnAmbiguous, PipelinePolicy, Reply, ResumePolicy};

    #[test]
    fn policies_have_their_documented_defaults() {
        let resume =
            ResumePolicy { max_attempts: 2, on_ambiguous: OnAmbiguous::Stop, ..ResumePolicy::default() };
        assert_eq!(ResumePolicy::default(), resume);
        assert_eq!(
            PipelinePolicy::default(),
            PipelinePolicy { resume, max_corrections: 1, may_change: false }
        );
    }

    #[test]
    fn a_broken_reply_has_no_stop_or_counts() {
        let reply = Reply::broken_off("a", Ending::Dropped);
        assert_eq!((reply.stop, reply.output_tokens, reply.limit, reply.reasoned), (None, None, None, false));
    }
}
