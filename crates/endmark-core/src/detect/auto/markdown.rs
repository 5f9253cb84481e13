//! Where in Markdown a byte stands: as far as it takes to find JSON in it.

/// How many bytes of a fence's info string are looked at.
const INFO_BYTES: usize = 8;

/// What a fence says is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    /// `json`, `jsonl` or `ndjson`.
    Json,
    /// Nothing was said.
    Unsaid,
    Other,
}

/// An open code fence.
#[derive(Debug, Clone, Copy)]
struct Fence {
    sign: u8,
    length: usize,
    language: Language,
    /// Whether nothing stands before it in the text.
    first: bool,
    /// Whether nothing but whitespace was seen in it.
    empty: bool,
}

/// How far the current line has come.
#[derive(Debug, Clone, Copy)]
enum Line {
    /// Only whitespace and quotation signs.
    Blank,
    /// Signs that may be a fence.
    Signs { sign: u8, length: usize, first: bool },
    /// After the signs of an opening fence.
    Info { fence: Fence, info: [u8; INFO_BYTES], length: usize },
    /// After the signs of a closing fence.
    Closing,
    /// Anything else.
    Rest,
}

/// Follows lines and fences.
#[derive(Debug, Clone)]
pub(in crate::detect) struct Markdown {
    line: Line,
    fence: Option<Fence>,
    /// Whether anything but whitespace was seen.
    begun: bool,
}

/// A place where JSON may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::detect) enum Place {
    /// At the beginning of the text.
    First,
    /// At the beginning of a fence with which the text begins.
    FirstFence,
    /// At the beginning of a fence that says it holds JSON.
    JsonFence,
    /// Anywhere else.
    Prose,
}

impl Default for Markdown {
    fn default() -> Self {
        Self { line: Line::Blank, fence: None, begun: false }
    }
}

impl Markdown {
    /// Takes bytes up to one with which JSON may begin; answers how many it took without that byte, and
    /// where it stands.
    pub(in crate::detect) fn push(&mut self, bytes: &[u8]) -> (usize, Option<Place>) {
        let mut at = 0;
        while at < bytes.len() {
            if matches!(self.line, Line::Rest) {
                let found = match self.fence {
                    Some(_) => memchr::memchr(b'\n', &bytes[at..]),
                    None => memchr::memchr2(b'\n', b'{', &bytes[at..]),
                };
                let Some(length) = found else { return (bytes.len(), None) };
                at += length;
            }
            if let Some(place) = self.step(bytes[at]) {
                return (at, Some(place));
            }
            at += 1;
        }
        (at, None)
    }

    /// Takes one byte, unless JSON may begin with it.
    fn step(&mut self, byte: u8) -> Option<Place> {
        match self.line {
            Line::Blank => return self.step_blank(byte),
            Line::Signs { sign, length, first } if byte == sign => {
                self.line = Line::Signs { sign, length: length + 1, first };
            }
            Line::Signs { sign, length, first } => return self.end_signs(byte, sign, length, first),
            Line::Info { fence, info, length } => self.step_info(byte, fence, info, length),
            Line::Closing => match byte {
                b'\n' => {
                    self.fence = None;
                    self.line = Line::Blank;
                }
                b' ' | b'\t' | b'\r' => {}
                _ => self.line = Line::Rest,
            },
            Line::Rest => match byte {
                b'\n' => self.line = Line::Blank,
                b'{' if self.fence.is_none() => return Some(Place::Prose),
                _ => {}
            },
        }
        None
    }

    fn step_blank(&mut self, byte: u8) -> Option<Place> {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => return None,
            b'>' if self.fence.is_none() => self.begun = true,
            b'`' | b'~' => {
                self.line = Line::Signs { sign: byte, length: 1, first: !self.begun };
                self.begun = true;
            }
            b'{' | b'[' if self.place().is_some() => return self.place(),
            _ => self.pass(),
        }
        None
    }

    /// Where a bracket stands that begins a line; none where it is no JSON that is looked for.
    fn place(&self) -> Option<Place> {
        match self.fence {
            None if self.begun => Some(Place::Prose),
            None => Some(Place::First),
            Some(fence) if !fence.empty => None,
            Some(Fence { language: Language::Other, .. }) => None,
            Some(Fence { first: true, .. }) => Some(Place::FirstFence),
            Some(Fence { language: Language::Json, .. }) => Some(Place::JsonFence),
            Some(Fence { language: Language::Unsaid, .. }) => Some(Place::Prose),
        }
    }

    /// Takes a byte that says nothing more about its line.
    fn pass(&mut self) {
        self.begun = true;
        self.line = Line::Rest;
        if let Some(fence) = &mut self.fence {
            fence.empty = false;
        }
    }

    fn end_signs(&mut self, byte: u8, sign: u8, length: usize, first: bool) -> Option<Place> {
        match self.fence {
            Some(fence) if fence.sign == sign && fence.length <= length => self.line = Line::Closing,
            None if length >= 3 => {
                let fence = Fence { sign, length, language: Language::Unsaid, first, empty: true };
                self.line = Line::Info { fence, info: [0; INFO_BYTES], length: 0 };
            }
            _ => self.pass(),
        }
        self.step(byte)
    }

    fn step_info(&mut self, byte: u8, mut fence: Fence, mut info: [u8; INFO_BYTES], length: usize) {
        match byte {
            b'\n' => {
                let said = info[..length.min(INFO_BYTES)].trim_ascii().to_ascii_lowercase();
                fence.language = match said.as_slice() {
                    b"" => Language::Unsaid,
                    b"json" | b"jsonl" | b"ndjson" if length <= INFO_BYTES => Language::Json,
                    _ => Language::Other,
                };
                self.fence = Some(fence);
                self.line = Line::Blank;
            }
            b'`' if fence.sign == b'`' => self.line = Line::Rest,
            b' ' | b'\t' | b'\r' => {}
            _ => {
                if let Some(place) = info.get_mut(length) {
                    *place = byte;
                }
                self.line = Line::Info { fence, info, length: length.saturating_add(1).min(INFO_BYTES + 1) };
            }
        }
    }

    /// Whether a fence is open.
    pub(super) fn in_fence(&self) -> bool {
        self.fence.is_some()
    }

    /// The sign and the length of the open fence, should the text end here.
    pub(in crate::detect) fn open_fence(&self) -> Option<(char, usize)> {
        match (self.line, self.fence) {
            (Line::Closing, _) => None,
            (Line::Signs { sign, length, .. }, Some(fence))
                if sign == fence.sign && fence.length <= length =>
            {
                None
            }
            (Line::Signs { sign, length, .. }, None) if length >= 3 => Some((char::from(sign), length)),
            (Line::Info { fence, .. }, _) => Some((char::from(fence.sign), fence.length)),
            (_, fence) => fence.map(|fence| (char::from(fence.sign), fence.length)),
        }
    }

    /// Goes on after bytes that were taken for JSON; `blank_line` says that the current line has none of
    /// them.
    pub(in crate::detect) fn resume(&mut self, blank_line: bool) {
        self.pass();
        if blank_line {
            self.line = Line::Blank;
        }
    }
}
