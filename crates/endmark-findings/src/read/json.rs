//! JSON as far as it came: what is cut or broken has a beginning all the same.

/// A value, and whether all of it is there.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    /// Where it begins, in bytes.
    pub(super) begins: usize,
    /// Whether it has its end.
    pub(super) is_closed: bool,
}

/// What a value is; a number keeps its spelling.
#[derive(Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// A value in a text.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) root: Node,
    /// Behind it, or where it stops.
    pub(super) ends: usize,
    /// What is wrong there, if it is neither whole nor merely cut.
    pub(super) problem: Option<&'static str>,
    /// Where escapes stand for half of a character and were replaced, in bytes; the first ones.
    pub(super) halves: Vec<usize>,
}

/// The text of a string.
#[derive(Debug)]
pub(super) struct StringAt {
    pub(super) text: String,
    /// Behind it, or where it stops.
    pub(super) ends: usize,
    /// Whether it has its end.
    pub(super) is_closed: bool,
    /// Where escapes stand for half of a character and were replaced, in bytes; the first ones.
    pub(super) halves: Vec<usize>,
}

/// More escapes that stand for half of a character are not kept.
const MOST_HALVES: usize = 64;

/// What is nested deeper is no result, and would be taken apart level by level.
const DEEPEST: usize = 32;

/// A list or an object that is open.
struct Open {
    node: Node,
    key: Option<String>,
}

/// Reads the object or list that begins at this byte; none if there is none. Tolerates what models write and JSON forbids:
/// a comma behind the last item, line breaks in texts. Time grows with the text, and the stack does not.
pub(super) fn parse(text: &[u8], at: usize) -> Option<Parsed> {
    if !matches!(text.get(at), Some(b'{' | b'[')) {
        return None;
    }
    let mut parser = Parser { text, at, open: Vec::new(), done: None, halves: Vec::new() };
    let problem = parser.run();
    let ends = parser.at.min(text.len());
    let mut root = parser.done;
    while let Some(open) = parser.open.pop() {
        match parser.open.last_mut() {
            Some(outer) => outer.take(open.node),
            None => root = Some(open.node),
        }
    }
    let halves = parser.halves;
    root.map(|root| Parsed { root, ends, problem, halves })
}

/// The string whose quote is at this byte.
pub(super) fn string_at(text: &[u8], at: usize) -> Option<StringAt> {
    if text.get(at) != Some(&b'"') {
        return None;
    }
    let mut parser = Parser { text, at, open: Vec::new(), done: None, halves: Vec::new() };
    let node = parser.text_value();
    let Value::Text(string) = node.value else { return None };
    let ends = parser.at.min(text.len());
    Some(StringAt { text: string, ends, is_closed: node.is_closed, halves: parser.halves })
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    open: Vec<Open>,
    done: Option<Node>,
    halves: Vec<usize>,
}

impl Open {
    fn take(&mut self, node: Node) {
        match &mut self.node.value {
            Value::List(items) => items.push(node),
            Value::Object(members) => {
                if let Some(key) = self.key.take() {
                    members.push((key, node));
                }
            }
            _ => {}
        }
    }
}

impl Parser<'_> {
    /// Goes on until the value is whole, the text stops, or something is wrong.
    fn run(&mut self) -> Option<&'static str> {
        while self.done.is_none() {
            self.skip_space();
            let byte = *self.text.get(self.at)?;
            let is_key = self
                .open
                .last()
                .is_some_and(|open| matches!(open.node.value, Value::Object(_)) && open.key.is_none());
            match byte {
                b',' => self.at += 1,
                b'}' | b']' if !self.close(byte) => return Some("this bracket closes nothing"),
                b'}' | b']' => {}
                b'"' if is_key => {
                    let key = self.text_value();
                    self.skip_space();
                    match self.text.get(self.at) {
                        None => return None,
                        Some(b':') => self.at += 1,
                        Some(_) => return Some("a name without a colon"),
                    }
                    if let (Value::Text(key), Some(open)) = (key.value, self.open.last_mut()) {
                        open.key = Some(key);
                    }
                }
                _ if is_key => return Some("a name in quotes is expected"),
                b'{' | b'[' if self.open.len() == DEEPEST => return Some("it is nested too deep"),
                b'{' | b'[' => {
                    let value =
                        if byte == b'{' { Value::Object(Vec::new()) } else { Value::List(Vec::new()) };
                    let node = Node { value, begins: self.at, is_closed: false };
                    self.open.push(Open { node, key: None });
                    self.at += 1;
                }
                b'"' => {
                    let node = self.text_value();
                    self.put(node);
                }
                _ => match self.word() {
                    Some(node) => self.put(node),
                    None => return Some("a value is expected"),
                },
            }
        }
        None
    }

    /// Closes what is open; not with a bracket of the other kind.
    fn close(&mut self, byte: u8) -> bool {
        let Some(mut open) = self.open.pop() else { return false };
        let is_alike = matches!(open.node.value, Value::Object(_)) == (byte == b'}');
        if !is_alike {
            self.open.push(open);
            return false;
        }
        self.at += 1;
        open.node.is_closed = true;
        self.put(open.node);
        true
    }

    fn put(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(open) => open.take(node),
            None => self.done = Some(node),
        }
    }

    fn skip_space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// `true`, `null`, a number: up to what cannot belong to one.
    fn word(&mut self) -> Option<Node> {
        let begins = self.at;
        let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        while self.text.get(self.at).is_some_and(is_of_word) {
            self.at += 1;
        }
        let word = std::str::from_utf8(&self.text[begins..self.at]).ok()?;
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" | "None" => Value::Null,
            number if number.parse::<f64>().is_ok() => Value::Number(number.to_owned()),
            // A word that is cut is nothing yet.
            _ if self.at == self.text.len() && !word.is_empty() => Value::Null,
            _ => {
                self.at = begins;
                return None;
            }
        };
        Some(Node { value, begins, is_closed: self.at < self.text.len() })
    }

    /// The text whose quote is here. What is no escape stands for itself.
    fn text_value(&mut self) -> Node {
        let begins = self.at;
        self.at += 1;
        let mut bytes: Vec<u8> = Vec::new();
        let mut is_closed = false;
        while let Some(byte) = self.text.get(self.at) {
            self.at += 1;
            match byte {
                b'"' => {
                    is_closed = true;
                    break;
                }
                b'\\' => self.escape(&mut bytes),
                byte => bytes.push(*byte),
            }
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) if !is_closed && error.utf8_error().error_len().is_none() => {
                let valid = error.utf8_error().valid_up_to();
                String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned()
            }
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        Node { value: Value::Text(text), begins, is_closed }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) {
        let Some(byte) = self.text.get(self.at).copied() else { return };
        self.at += 1;
        let plain = match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
            b'"' | b'\\' | b'/' => byte,
            b'u' => return self.unicode(bytes),
            other => {
                bytes.extend([b'\\', other]);
                return;
            }
        };
        bytes.push(plain);
    }

    /// Four digits, and those of the other half where they are one of a pair.
    fn unicode(&mut self, bytes: &mut Vec<u8>) {
        let begins = self.at - 2;
        let Some(first) = self.hex(self.at) else {
            // An escape that is cut is not there; one that is none stands for itself.
            match self.text.get(self.at..self.at + 4) {
                None => self.at = self.text.len(),
                Some(_) => bytes.extend(*b"\\u"),
            }
            return;
        };
        self.at += 4;
        let is_high = (0xD800..0xDC00).contains(&first);
        let pair = self.text.get(self.at..self.at + 2) == Some(b"\\u");
        let second =
            self.hex(self.at + 2).filter(|second| is_high && pair && (0xDC00..0xE000).contains(second));
        let code = match second {
            Some(second) => {
                self.at += 6;
                0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00)
            }
            None if is_high && self.text.len() < self.at + 6 => {
                // Its other half may still have come.
                self.at = self.text.len();
                return;
            }
            None => first,
        };
        let sign = char::from_u32(code);
        if sign.is_none() && self.halves.len() < MOST_HALVES {
            self.halves.push(begins);
        }
        let sign = sign.unwrap_or(char::REPLACEMENT_CHARACTER);
        bytes.extend(sign.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn hex(&self, at: usize) -> Option<u32> {
        let digits = std::str::from_utf8(self.text.get(at..at + 4)?).ok()?;
        digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    }
}

impl Node {
    /// The member of an object.
    pub(super) fn members(&self) -> &[(String, Self)] {
        match &self.value {
            Value::Object(members) => members,
            _ => &[],
        }
    }

    /// The items of a list.
    pub(super) fn items(&self) -> Option<&[Self]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// Whether it is all there, and all that is in it.
    pub(super) fn is_whole(&self) -> bool {
        self.is_closed
    }
}
