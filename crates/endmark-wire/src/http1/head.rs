//! Parses the head of a request strictly.

use memchr::memchr;

use super::fault::Fault;

/// The maximum size of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// The maximum number of bytes, including the empty line.
    pub bytes: usize,
    /// The maximum number of header fields.
    pub fields: usize,
}

/// How the end of a request's body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// After this many bytes. 0 means that there is no body.
    Bytes(u64),
    /// After its last chunk.
    Chunked,
}

/// The parts of a request's head that determine the request's end and its recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head<'a> {
    /// The method as written.
    pub method: &'a str,
    /// The path and query as written. For `CONNECT`, a host and a port.
    pub target: &'a str,
    /// The value of `Host`. Only a request of HTTP/1.0 may lack it.
    pub host: Option<&'a [u8]>,
    /// How the end of its body is found.
    pub body: BodyLength,
}

impl<'a> Head<'a> {
    /// Parses a complete head, from its request line to its empty line.
    ///
    /// ```
    /// use endmark_wire::http1::{BodyLength, Fault, Head, HeadLimits};
    /// let bounds = HeadLimits { bytes: 1024, fields: 10 };
    /// let head = Head::read(b"POST /v1 HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n", bounds)?;
    /// assert_eq!((head.method, head.target, head.body), ("POST", "/v1", BodyLength::Bytes(7)));
    /// assert_eq!(Head::read(b"GET / HTTP/1.1\nHost: a\r\n\r\n", bounds), Err(Fault::BareLineFeed));
    /// # Ok::<(), Fault>(())
    /// ```
    ///
    /// # Errors
    /// [`Fault`] with the reason for refusing the request.
    pub fn read(bytes: &'a [u8], bounds: HeadLimits) -> Result<Self, Fault> {
        if bytes.len() > bounds.bytes {
            return Err(Fault::HeadTooLong(bounds.bytes));
        }
        let mut lines = Lines { rest: bytes };
        let (method, target, is_1_1) = parse_request_line(lines.next()?)?;
        let mut fields = 0;
        let mut host = None;
        let mut length = None;
        let mut is_chunked = false;
        loop {
            let line = lines.next()?;
            if line.is_empty() {
                break;
            }
            fields += 1;
            if fields > bounds.fields {
                return Err(Fault::TooManyFields(bounds.fields));
            }
            let (name, value) = parse_field(line)?;
            if name.eq_ignore_ascii_case(b"host") {
                if host.replace(value).is_some() {
                    return Err(Fault::Host);
                }
            } else if is_named(name, b"content-length") {
                if length.replace(parse_content_length(name, value)?).is_some() {
                    return Err(Fault::ContentLength);
                }
            } else if is_named(name, b"transfer-encoding") {
                let is_known = name.contains(&b'-') && value.eq_ignore_ascii_case(b"chunked");
                if !is_known || is_chunked || !is_1_1 {
                    return Err(Fault::TransferEncoding);
                }
                is_chunked = true;
            }
        }
        if is_1_1 && host.is_none() {
            return Err(Fault::Host);
        }
        let body = match (length, is_chunked) {
            (Some(_), true) => return Err(Fault::TwoLengths),
            (Some(length), false) => BodyLength::Bytes(length),
            (None, true) => BodyLength::Chunked,
            (None, false) => BodyLength::Bytes(0),
        };
        Ok(Self { method, target, host, body })
    }
}

/// The lines of a head. Each ends in CR LF and contains no other line break.
struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Result<&'a [u8], Fault> {
        let end = memchr(b'\n', self.rest).ok_or(Fault::BareCarriageReturn)?;
        let line = self.rest[..end].strip_suffix(b"\r").ok_or(Fault::BareLineFeed)?;
        if memchr(b'\r', line).is_some() {
            return Err(Fault::BareCarriageReturn);
        }
        self.rest = &self.rest[end + 1..];
        Ok(line)
    }
}

/// Returns the method, the target, and whether the version is 1.1.
fn parse_request_line(line: &[u8]) -> Result<(&str, &str, bool), Fault> {
    let line = std::str::from_utf8(line).map_err(|_| Fault::RequestLine)?;
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Fault::RequestLine);
    };
    let is_1_1 = match version {
        "HTTP/1.1" => true,
        "HTTP/1.0" => false,
        other if other.starts_with("HTTP/") => return Err(Fault::Version),
        _ => return Err(Fault::RequestLine),
    };
    if method.is_empty() || !method.bytes().all(is_token_byte) {
        return Err(Fault::RequestLine);
    }
    // The characters that a URI may contain (RFC 3986), and some that clients do not escape.
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let is_readable = target.bytes().all(|byte| byte.is_ascii_graphic() && !b"#<>".contains(&byte))
        && !path.contains('`')
        && !query.contains('"');
    let is_target = match method {
        "CONNECT" => !target.is_empty(),
        "OPTIONS" if target == "*" => true,
        _ => target.starts_with('/'),
    };
    if !is_readable || !is_target {
        return Err(Fault::Target);
    }
    Ok((method, target, is_1_1))
}

/// Returns a field's name, and its value without surrounding spaces.
pub(super) fn parse_field(line: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    if line.starts_with(b" ") || line.starts_with(b"\t") {
        return Err(Fault::FoldedHeader);
    }
    let colon = memchr(b':', line).ok_or(Fault::FieldName)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if name.is_empty() || !name.iter().copied().all(is_token_byte) {
        return Err(Fault::FieldName);
    }
    if value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(Fault::FieldValue);
    }
    Ok((name, value.trim_ascii()))
}

/// Returns whether a field has one of these names. `_` counts as `-`, because some servers treat them as equal.
fn is_named(name: &[u8], known: &[u8]) -> bool {
    name.len() == known.len()
        && name
            .iter()
            .zip(known)
            .all(|(byte, known)| byte.eq_ignore_ascii_case(known) || (*byte == b'_' && *known == b'-'))
}

/// Parses a length strictly. Signs, lists and spaces, which some servers accept, are errors.
fn parse_content_length(name: &[u8], value: &[u8]) -> Result<u64, Fault> {
    // Any number of 19 digits fits into a `u64`.
    if !name.contains(&b'-') || !(1..=19).contains(&value.len()) || !value.iter().all(u8::is_ascii_digit) {
        return Err(Fault::ContentLength);
    }
    Ok(value.iter().fold(0, |length, digit| length * 10 + u64::from(digit - b'0')))
}

/// Returns whether a byte may occur in a token (RFC 9110, section 5.6.2).
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests;
