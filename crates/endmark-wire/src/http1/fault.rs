//! Errors in the bytes of a request.

/// The reason for refusing the bytes of a request. Each message states how to correct the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The connection uses TLS.
    #[error("this port speaks plain HTTP and the client speaks TLS: use http://, or configure [tls]")]
    Tls,
    /// The connection uses HTTP/2.
    #[error("this port speaks HTTP/1.1 and the client began with HTTP/2: let it use HTTP/1.1")]
    Http2,
    /// The version is neither 1.1 nor 1.0.
    #[error("the request's HTTP version is not served here: use HTTP/1.1")]
    Version,
    /// The request line is not `METHOD TARGET HTTP/1.1`.
    #[error(
        "the request line cannot be read: it must be a method, a path and HTTP/1.1 with one space between"
    )]
    RequestLine,
    /// The target is a complete URL, or does not begin with `/`.
    #[error(
        "the request's target must be a path that begins with `/`: a proxy's absolute URL is not served here"
    )]
    Target,
    /// A line ends in a bare line feed.
    #[error("a line of the request's head ends without a carriage return: lines must end in CR LF")]
    BareLineFeed,
    /// A carriage return is not followed by a line feed.
    #[error("the request's head has a carriage return that ends no line: remove it")]
    BareCarriageReturn,
    /// A field continues on the next line, which begins with a space.
    #[error("a header field of the request continues on the next line: write it on one line")]
    FoldedHeader,
    /// A field's name is empty or contains a character that names cannot contain, such as a space.
    #[error("a header field of the request has no readable name: a name is followed by its colon at once")]
    FieldName,
    /// A field's value contains a control character.
    #[error("a header field of the request has a control character in its value: remove it")]
    FieldValue,
    /// The head is longer than allowed.
    #[error("the request's head is over {0} bytes: send less, or raise [limits] header_bytes")]
    HeadTooLong(usize),
    /// The head has more fields than allowed.
    #[error("the request's head has over {0} fields: send fewer, or raise [limits] header_fields")]
    TooManyFields(usize),
    /// The request states its length in two ways, which may contradict each other.
    #[error("the request has both Content-Length and Transfer-Encoding: send one of them")]
    TwoLengths,
    /// A length is repeated, or is not a number.
    #[error("the request's Content-Length must be given once, as one number")]
    ContentLength,
    /// The transfer coding is not `chunked`, is repeated, or is used in HTTP/1.0.
    #[error("the only Transfer-Encoding served here is `chunked`, once, and in HTTP/1.1")]
    TransferEncoding,
    /// There is not exactly one `Host`.
    #[error("the request must have exactly one Host, the name that it was sent to")]
    Host,
    /// A chunk's size, extension or end cannot be read.
    #[error(
        "the request's chunked body cannot be read: a chunk is its size in hexadecimal digits, its bytes, and CR LF"
    )]
    Chunk,
    /// The chunk headers, extensions and trailers of a chunked body are longer than allowed.
    #[error("the extensions or trailers of the request's chunked body are too long: leave them out")]
    ChunkOverhead,
}
