//! Decides when a cut reply is resumed (PC-9).

use endmark_recovery::CutKind;

use crate::settings::Mode;

/// The reaction to a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Request the rest.
    Resume,
    /// Deliver the cut reply unchanged, and disclose the cut.
    Disclose,
}

/// Decides how to react to a cut of `kind`. In the mode `auto`, a client that limited plain text wanted the cut, and
/// gets the text unchanged.
pub(super) fn action(mode: Mode, kind: CutKind, client_set_limit: bool, grammar_demanded: bool) -> Action {
    match (mode, kind) {
        (Mode::Off | Mode::Warn, _) | (_, CutKind::Window) => Action::Disclose,
        (Mode::On, _) | (Mode::Auto, CutKind::Dropped | CutKind::Format | CutKind::Marker) => Action::Resume,
        (Mode::Auto, CutKind::Limit | CutKind::Empty) => {
            if client_set_limit && !grammar_demanded {
                Action::Disclose
            } else {
                Action::Resume
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_matches_the_specification() {
        use Action::{Disclose, Resume};
        let limited = true;
        let demanded = true;
        let cases = [
            (Mode::Auto, CutKind::Limit, !limited, !demanded, Resume),
            (Mode::Auto, CutKind::Limit, limited, !demanded, Disclose),
            (Mode::Auto, CutKind::Limit, limited, demanded, Resume),
            (Mode::Auto, CutKind::Empty, limited, !demanded, Disclose),
            (Mode::Auto, CutKind::Dropped, limited, !demanded, Resume),
            (Mode::Auto, CutKind::Format, limited, demanded, Resume),
            (Mode::On, CutKind::Limit, limited, !demanded, Resume),
            (Mode::On, CutKind::Window, !limited, !demanded, Disclose),
            (Mode::Warn, CutKind::Dropped, !limited, demanded, Disclose),
            (Mode::Off, CutKind::Limit, !limited, !demanded, Disclose),
        ];
        for (mode, kind, limited, demanded, expected) in cases {
            assert_eq!(
                action(mode, kind, limited, demanded),
                expected,
                "{mode:?} {kind:?} {limited} {demanded}"
            );
        }
    }
}
