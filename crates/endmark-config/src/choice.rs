//! Values of which each is a word.

/// A value that is one word out of a few.
pub(crate) trait Choice: Copy + PartialEq + 'static {
    /// Every word with its meaning.
    fn words() -> Vec<(&'static str, Self)>;

    /// What this word means, if it is one of them.
    fn from_word(word: &str) -> Option<Self> {
        Self::words().into_iter().find(|(name, _)| *name == word).map(|(_, value)| value)
    }

    /// The word for this value.
    fn word(self) -> &'static str {
        Self::words().into_iter().find(|(_, value)| *value == self).map_or("", |(name, _)| name)
    }
}
