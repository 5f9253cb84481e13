//! Decides when a cut reply is resumed (PC-9).

use endmark_recovery::CutKind;

use crate::settings::ResumeMode;

/// The reaction to a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CutReaction {
    /// Request the rest.
    Resume,
    /// Deliver the cut reply unchanged, and disclose the cut.
    Disclose,
}

/// Decides how to react to a cut of `kind`. In the mode `auto`, a client that limited plain text wanted the cut, and
/// gets the text unchanged.
pub(super) fn reaction(
    mode: ResumeMode,
    kind: CutKind,
    client_set_limit: bool,
    grammar_demanded: bool,
) -> CutReaction {
    match (mode, kind) {
        (ResumeMode::Off | ResumeMode::Warn, _) | (_, CutKind::Window) => CutReaction::Disclose,
        (ResumeMode::On, _) | (ResumeMode::Auto, CutKind::Dropped | CutKind::Format | CutKind::Marker) => {
            CutReaction::Resume
        }
        (ResumeMode::Auto, CutKind::Limit | CutKind::Empty) => {
            if client_set_limit && !grammar_demanded {
                CutReaction::Disclose
            } else {
                CutReaction::Resume
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_the_kind_and_the_limit_decide_the_reaction() {
        use CutReaction::{Disclose, Resume};
        let limited = true;
        let demanded = true;
        let cases = [
            (ResumeMode::Auto, CutKind::Limit, !limited, !demanded, Resume),
            (ResumeMode::Auto, CutKind::Limit, limited, !demanded, Disclose),
            (ResumeMode::Auto, CutKind::Limit, limited, demanded, Resume),
            (ResumeMode::Auto, CutKind::Empty, limited, !demanded, Disclose),
            (ResumeMode::Auto, CutKind::Dropped, limited, !demanded, Resume),
            (ResumeMode::Auto, CutKind::Format, limited, demanded, Resume),
            (ResumeMode::On, CutKind::Limit, limited, !demanded, Resume),
            (ResumeMode::On, CutKind::Window, !limited, !demanded, Disclose),
            (ResumeMode::Warn, CutKind::Dropped, !limited, demanded, Disclose),
            (ResumeMode::Off, CutKind::Limit, !limited, !demanded, Disclose),
        ];
        for (mode, kind, limited, demanded, expected) in cases {
            assert_eq!(
                reaction(mode, kind, limited, demanded),
                expected,
                "{mode:?} {kind:?} {limited} {demanded}"
            );
        }
    }
}
