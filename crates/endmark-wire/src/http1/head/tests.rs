//! Known forms of request smuggling, and valid heads.

use super::*;

const BOUNDS: HeadLimits = HeadLimits { bytes: 2_048, fields: 5 };

fn read(head: &str) -> Result<Head<'_>, Fault> {
    Head::read(head.as_bytes(), BOUNDS)
}

/// Reads an HTTP/1.1 request with these fields after its host.
fn read_with_fields(fields: &str) -> Result<BodyLength, Fault> {
    read(&format!("POST /v1 HTTP/1.1\r\nhost: a\r\n{fields}\r\n")).map(|head| head.body)
}

#[test]
fn usual_client_requests_are_parsed() {
    assert_eq!(read_with_fields(""), Ok(BodyLength::Bytes(0)));
    assert_eq!(read_with_fields("Content-Length: 12\r\n"), Ok(BodyLength::Bytes(12)));
    assert_eq!(read_with_fields("content-length:0012 \r\n"), Ok(BodyLength::Bytes(12)));
    assert_eq!(read_with_fields("Transfer-Encoding: Chunked\r\n"), Ok(BodyLength::Chunked));
    assert_eq!(
        read_with_fields("x-name: caf\u{e9}\t, and more: of it\r\nempty:\r\n"),
        Ok(BodyLength::Bytes(0))
    );
    let head = read("GET /v1/models?x=%20 HTTP/1.1\r\nHost: [::1]:4141\r\n\r\n").unwrap();
    assert_eq!((head.target, head.host), ("/v1/models?x=%20", Some(&b"[::1]:4141"[..])));
    assert_eq!(read("GET / HTTP/1.0\r\n\r\n").unwrap().host, None);
    assert!(read("OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n").is_ok());
}

#[test]
fn two_lengths_are_refused_in_every_spelling() {
    assert_eq!(
        read_with_fields("content-length: 5\r\ntransfer-encoding: chunked\r\n"),
        Err(Fault::TwoLengths)
    );
    assert_eq!(
        read_with_fields("transfer-encoding: chunked\r\ncontent-length: 5\r\n"),
        Err(Fault::TwoLengths)
    );
    for length in [
        "5\r\ncontent-length: 6",
        "5\r\ncontent-length: 5",
        "5, 5",
        "5,6",
        "+5",
        "-5",
        "5 6",
        "0x5",
        "",
        "5;a",
        "99999999999999999999",
    ] {
        assert_eq!(
            read_with_fields(&format!("content-length: {length}\r\n")),
            Err(Fault::ContentLength),
            "{length}"
        );
    }
    assert_eq!(read_with_fields("content_length: 5\r\n"), Err(Fault::ContentLength));
}

#[test]
fn any_coding_but_chunked_is_refused() {
    for coding in [
        "gzip, chunked",
        "chunked, chunked",
        "chunked, identity",
        "identity",
        "xchunked",
        "chunked;q=1",
        "\x0bchunked",
        "",
        "chunked\r\ntransfer-encoding: chunked",
    ] {
        let refused = read_with_fields(&format!("transfer-encoding: {coding}\r\n"));
        assert!(
            matches!(refused, Err(Fault::TransferEncoding | Fault::FieldValue)),
            "{coding:?}: {refused:?}"
        );
    }
    assert_eq!(read_with_fields("transfer_encoding: chunked\r\n"), Err(Fault::TransferEncoding));
    assert_eq!(read("POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n"), Err(Fault::TransferEncoding));
}

#[test]
fn ambiguous_header_names_and_lines_are_refused() {
    assert_eq!(read_with_fields("transfer-encoding : chunked\r\n"), Err(Fault::FieldName));
    assert_eq!(read_with_fields(": chunked\r\n"), Err(Fault::FieldName));
    assert_eq!(read_with_fields("no colon\r\n"), Err(Fault::FieldName));
    assert_eq!(read_with_fields("x: 1\r\n transfer-encoding: chunked\r\n"), Err(Fault::FoldedHeader));
    assert_eq!(read_with_fields("x: 1\r\n\tmore\r\n"), Err(Fault::FoldedHeader));
    assert_eq!(read_with_fields("x: 1\ntransfer-encoding: chunked\r\n"), Err(Fault::BareLineFeed));
    assert_eq!(read_with_fields("x: 1\rtransfer-encoding: chunked\r\n"), Err(Fault::BareCarriageReturn));
    assert_eq!(read_with_fields("x: 1\r\r\n"), Err(Fault::BareCarriageReturn));
    assert_eq!(read_with_fields("x: 1\0\r\n"), Err(Fault::FieldValue));
    assert_eq!(read("GET / HTTP/1.1\r\nhost: a\n\r\n"), Err(Fault::BareLineFeed));
}

#[test]
fn a_request_has_exactly_one_host() {
    assert_eq!(read("GET / HTTP/1.1\r\n\r\n"), Err(Fault::Host));
    assert_eq!(read_with_fields("Host: b\r\n"), Err(Fault::Host));
}

#[test]
fn a_request_line_has_a_method_a_path_and_a_version() {
    for line in [
        "GET",
        "GET /",
        "GET  / HTTP/1.1",
        "GET / HTTP/1.1 ",
        " GET / HTTP/1.1",
        "GET\t/ HTTP/1.1",
        "G(T / HTTP/1.1",
        "GET / http/1.1",
    ] {
        assert_eq!(read(&format!("{line}\r\nhost: a\r\n\r\n")), Err(Fault::RequestLine), "{line}");
    }
    for target in [
        "http://elsewhere/v1",
        "v1",
        "*",
        "/v1#part",
        "/<x>",
        "/a`b",
        "/?\"",
        "/v\u{e9}",
        "/a\x01b",
        "elsewhere:443",
    ] {
        assert_eq!(
            read(&format!("GET {target} HTTP/1.1\r\nhost: a\r\n\r\n")),
            Err(Fault::Target),
            "{target}"
        );
    }
    for version in ["HTTP/2.0", "HTTP/1.2", "HTTP/0.9", "HTTP/1.1x"] {
        assert_eq!(read(&format!("GET / {version}\r\nhost: a\r\n\r\n")), Err(Fault::Version), "{version}");
    }
}

#[test]
fn a_head_is_bounded() {
    let fields = |count: usize| "x: 1\r\n".repeat(count);
    assert!(read_with_fields(&fields(4)).is_ok());
    assert_eq!(read_with_fields(&fields(5)), Err(Fault::TooManyFields(5)));
    assert_eq!(read_with_fields(&format!("x: {}\r\n", "1".repeat(2_048))), Err(Fault::HeadTooLong(2_048)));
}
