//! Colours for terminals that can show them.

use endmark_config::Environment;

use crate::arguments::ColorChoice;

/// Colours text, or returns it unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Painter {
    is_on: bool,
}

/// The escape sequences that a [`Painter`] writes.
pub(crate) const COLOURS: [&str; 6] =
    ["\x1b[1;32m", "\x1b[1;31m", "\x1b[1;33m", "\x1b[1m", "\x1b[2m", "\x1b[0m"];

/// The meaning of a colour. All output is readable without colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Good or whole.
    Good,
    /// Wrong or cut.
    Bad,
    /// Doubtful.
    Doubt,
    /// A heading or an important word.
    Strong,
    /// A detail.
    Dim,
}

impl Painter {
    /// Returns every text unchanged.
    #[cfg(test)]
    pub(crate) const OFF: Self = Self { is_on: false };

    /// Decides by the option, the environment, and whether the output is a terminal.
    pub(crate) fn new(choice: ColorChoice, is_terminal: bool, environment: &Environment) -> Self {
        let is_wanted =
            is_terminal && environment.get("NO_COLOR").is_none() && environment.get("TERM") != Some("dumb");
        Self {
            is_on: match choice {
                ColorChoice::Always => true,
                ColorChoice::Never => false,
                ColorChoice::Auto => is_wanted,
            },
        }
    }

    /// Returns a painter that colours text only if `is_on` is true.
    pub(crate) const fn enabled_if(is_on: bool) -> Self {
        Self { is_on }
    }

    /// Whether anything is coloured.
    pub(crate) fn is_enabled(self) -> bool {
        self.is_on
    }

    /// Returns the text in the colour for this meaning.
    pub(crate) fn paint(self, paint: Paint, text: &str) -> String {
        if !self.is_on || text.is_empty() {
            return text.to_owned();
        }
        let code = match paint {
            Paint::Good => "1;32",
            Paint::Bad => "1;31",
            Paint::Doubt => "1;33",
            Paint::Strong => "1",
            Paint::Dim => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::new(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())))
    }

    #[test]
    fn colour_is_for_terminals_and_no_color_disables_it() {
        let is_on = |choice, is_terminal, variables: &[_]| {
            Painter::new(choice, is_terminal, &environment(variables)).is_on
        };
        assert!(is_on(ColorChoice::Auto, true, &[]));
        assert!(!is_on(ColorChoice::Auto, false, &[]));
        assert!(!is_on(ColorChoice::Auto, true, &[("NO_COLOR", "1")]));
        assert!(is_on(ColorChoice::Auto, true, &[("NO_COLOR", "")]));
        assert!(!is_on(ColorChoice::Auto, true, &[("TERM", "dumb")]));
        assert!(is_on(ColorChoice::Always, false, &[("NO_COLOR", "1")]));
        assert!(!is_on(ColorChoice::Never, true, &[]));
    }
}
