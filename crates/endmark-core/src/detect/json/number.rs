//! The number of RFC 8259, cut anywhere.

/// How far a number has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// `-`
    Minus,
    /// `0`, which no digit may follow
    Zero,
    /// `12`
    Integer,
    /// `12.`
    Point,
    /// `12.5`
    Fraction,
    /// `12e`
    Exponent,
    /// `12e+`
    ExponentSign,
    /// `12e+5`
    ExponentDigits,
}

/// Where a scan over a number stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberScan {
    /// At the end of the chunk; it may go on.
    Open(Number),
    /// Before the byte at this index, which is not part of it.
    Ended(usize),
    /// At the byte at this index, which cannot stand there.
    Invalid(usize),
}

impl Number {
    /// Begins a number; none if no number begins with `byte`.
    #[inline]
    pub(super) fn begin(byte: u8) -> Option<Self> {
        match byte {
            b'-' => Some(Self::Minus),
            b'0' => Some(Self::Zero),
            b'1'..=b'9' => Some(Self::Integer),
            _ => None,
        }
    }

    /// Whether it is a number as it stands.
    pub(super) fn is_whole(self) -> bool {
        matches!(self, Self::Zero | Self::Integer | Self::Fraction | Self::ExponentDigits)
    }

    /// Goes on with the bytes of `chunk` from `at`.
    #[inline]
    pub(super) fn scan(mut self, chunk: &[u8], mut at: usize) -> NumberScan {
        loop {
            if self.takes_digits() {
                at += chunk[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            }
            let Some(&byte) = chunk.get(at) else { return NumberScan::Open(self) };
            self = match (self, byte) {
                (Self::Zero | Self::Integer, b'.') => Self::Point,
                (Self::Zero | Self::Integer | Self::Fraction, b'e' | b'E') => Self::Exponent,
                (Self::Zero, b'0'..=b'9') => return NumberScan::Invalid(at),
                (Self::Zero | Self::Integer | Self::Fraction | Self::ExponentDigits, _) => {
                    return NumberScan::Ended(at);
                }
                (Self::Minus, b'0') => Self::Zero,
                (Self::Minus, b'1'..=b'9') => Self::Integer,
                (Self::Point, b'0'..=b'9') => Self::Fraction,
                (Self::Exponent, b'+' | b'-') => Self::ExponentSign,
                (Self::Exponent | Self::ExponentSign, b'0'..=b'9') => Self::ExponentDigits,
                _ => return NumberScan::Invalid(at),
            };
            at += 1;
        }
    }

    /// Whether any number of digits may follow.
    #[inline]
    fn takes_digits(self) -> bool {
        matches!(self, Self::Integer | Self::Fraction | Self::ExponentDigits)
    }
}
