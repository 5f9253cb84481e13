//! Tests every outcome of detection and closing, each in a test with its name.

mod detection {
    use crate::detect::detect;
    use crate::{Format, Verdict};

    fn verdict(text: &str) -> Verdict {
        detect(text.as_bytes(), &Format::Json).verdict
    }

    #[test]
    fn detect_returns_whole() {
        assert_eq!(verdict("[1]"), Verdict::Whole);
    }

    #[test]
    fn detect_returns_truncated() {
        let Verdict::Truncated(cut) = verdict("[1, 2") else { panic!("not truncated") };
        assert_eq!((cut.truncation_index, cut.last_valid_token.as_str()), (4, ","));
    }

    #[test]
    fn detect_returns_malformed() {
        assert!(matches!(verdict("[1}"), Verdict::Malformed { index: 2, .. }));
    }
}

mod closing {
    use crate::{CompleteError, Format, complete};

    fn error(text: &str, format: &Format) -> CompleteError {
        complete(text.as_bytes(), format).unwrap_err()
    }

    #[test]
    fn complete_returns_a_whole_text_unchanged() {
        let completed = complete(b"[1]", &Format::Json).unwrap();
        assert_eq!((completed.text.as_str(), completed.is_finished()), ("[1]", true));
    }

    #[test]
    fn complete_returns_a_closed_text() {
        let completed = complete(b"[1, 2", &Format::Json).unwrap();
        assert_eq!((completed.text.as_str(), completed.is_finished()), ("[1]", false));
    }

    #[test]
    fn complete_refuses_a_malformed_text() {
        let error = error("[1}", &Format::Json);
        assert!(matches!(error, CompleteError::Malformed { index: 2, .. }), "{error:?}");
        assert_eq!(error.code(), "malformed");
    }

    #[test]
    fn complete_refuses_a_text_without_a_value() {
        assert_eq!(error(" ", &Format::Json), CompleteError::NoValue);
        assert_eq!(CompleteError::NoValue.code(), "no_value");
    }

    #[test]
    fn complete_refuses_a_text_that_is_not_json() {
        assert_eq!(error("Dear all,", &Format::Auto), CompleteError::NotJson);
        assert_eq!(CompleteError::NotJson.code(), "not_json");
    }

    #[test]
    fn complete_refuses_a_format_without_a_grammar() {
        assert_eq!(error("Dear all,", &Format::Text), CompleteError::NoGrammar("text"));
        assert_eq!(CompleteError::NoGrammar("text").code(), "no_grammar");
    }
}
