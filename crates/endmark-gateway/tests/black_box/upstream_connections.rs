//! Connections to upstreams: through proxies, over TLS with a private authority, and over HTTP/2.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use endmark_gateway::{Authorities, Upstream as Target};
use h2::Reason;
use http::{Response, Version};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use testkit::{Answer, ForwardProxy, Script, ScriptedModel, chat_reply};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::support::{Endmark, read_stream, request, stream_request, text};

/// A private certificate authority, and its certificate for a server at 127.0.0.1.
pub(crate) struct TestCertificate {
    pub(crate) authority: String,
    chain: Vec<rustls::pki_types::CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

pub(crate) fn new_certificate() -> TestCertificate {
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let server = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
    let certificate = server.signed_by(&key, &issuer).unwrap();
    TestCertificate {
        authority: authority_certificate.pem(),
        chain: vec![certificate.der().clone()],
        key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
    }
}

/// Returns a TLS acceptor for a server that supports these protocols.
pub(crate) fn acceptor(certified: &TestCertificate, protocols: &[&str]) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certified.chain.clone(), certified.key.clone_key())
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// How an HTTP/2 server handles a request.
#[derive(Clone, Copy, PartialEq)]
enum RequestHandling {
    Answers,
    /// Refuses the stream without processing it.
    RefusesStream,
    /// Sends GOAWAY and closes the connection.
    GoesAway,
    /// Answers with a response head of this size in KiB.
    LongHead(usize),
}

/// Starts a real HTTP/2 server that handles its first requests in these ways, and answers all others.
async fn start_http2_server(
    certified: &TestCertificate,
    behaviors: Vec<RequestHandling>,
    body: Bytes,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = acceptor(certified, &["h2"]);
    let taken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&taken);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, count, manners, body) =
                (acceptor.clone(), Arc::clone(&count), behaviors.clone(), body.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((sent_requests, mut respond))) = connection.accept().await {
                    let index = count.fetch_add(1, Ordering::SeqCst);
                    match manners.get(index).copied().unwrap_or(RequestHandling::Answers) {
                        RequestHandling::RefusesStream => respond.send_reset(Reason::REFUSED_STREAM),
                        RequestHandling::GoesAway => connection.abrupt_shutdown(Reason::NO_ERROR),
                        manner => {
                            assert_eq!(sent_requests.version(), Version::HTTP_2);
                            let kind =
                                if body.starts_with(b"{") { "application/json" } else { "text/event-stream" };
                            let mut head = Response::builder().header("content-type", kind);
                            let kilobytes =
                                if let RequestHandling::LongHead(kilobytes) = manner { kilobytes } else { 0 };
                            for number in 0..kilobytes {
                                head = head.header(format!("x-field-{number}"), "x".repeat(1_000));
                            }
                            let mut send = respond.send_response(head.body(()).unwrap(), false).unwrap();
                            // A client that has read enough of the head resets the stream.
                            let _ = send.send_data(body.clone(), true);
                        }
                    }
                }
            });
        }
    });
    (address, taken)
}

/// Starts a gateway whose upstream uses TLS.
async fn start_with_upstream(address: SocketAddr, authorities: Authorities) -> Endmark {
    Endmark::start_with(Script::new(), |settings| {
        let base_url = format!("https://{address}/v1").parse().unwrap();
        settings.upstreams = vec![Target { authorities, ..Target::new("secure", base_url) }];
    })
    .await
}

fn reply() -> Bytes {
    Bytes::from(chat_reply("Yes.", "stop", (1, 1)).to_string())
}

#[tokio::test]
async fn an_upstream_is_trusted_only_with_its_certificate_authority() {
    let certified = new_certificate();
    let (address, taken) = start_http2_server(&certified, Vec::new(), reply()).await;
    let endmark = start_with_upstream(address, Authorities::default()).await;
    let refused = endmark.ask(&request(50)).await;
    assert_eq!(refused.status, 502);
    assert!(refused.text().contains("certificate"), "{}", refused.text());
    assert_eq!(taken.load(Ordering::SeqCst), 0);

    let own = Authorities::from_pem(certified.authority.as_bytes()).unwrap();
    let endmark = start_with_upstream(address, own).await;
    assert_eq!(text(&endmark.ask(&request(50)).await), "Yes.");

    let other = Authorities::from_pem(self::new_certificate().authority.as_bytes()).unwrap();
    assert_eq!(start_with_upstream(address, other).await.ask(&request(50)).await.status, 502);
}

#[tokio::test]
async fn http2_is_used_if_the_upstream_supports_it() {
    let certified = new_certificate();
    let own = || Authorities::from_pem(certified.authority.as_bytes()).unwrap();
    let (address, taken) = start_http2_server(&certified, Vec::new(), reply()).await;
    let endmark = start_with_upstream(address, own()).await;
    // Send many requests at once, over one connection.
    let sent_requests: Vec<_> = (0..20).map(|_| endmark.chat(&request(50)).send()).collect();
    for reply in sent_requests {
        assert_eq!(text(&reply.await.read().await), "Yes.");
    }
    assert_eq!(taken.load(Ordering::SeqCst), 20);

    let frames = testkit::chat_stream(&["one", " two", " three"], "stop").concat();
    let (address, _) = start_http2_server(&certified, Vec::new(), Bytes::from(frames.clone())).await;
    let read = start_with_upstream(address, own()).await.ask(&stream_request(50)).await;
    assert_eq!(read.body, frames.as_bytes());
    assert!(read_stream(&read).is_done);
}

#[tokio::test]
async fn a_refused_http2_stream_is_sent_again() {
    let certified = new_certificate();
    for manner in [RequestHandling::RefusesStream, RequestHandling::GoesAway] {
        let own = Authorities::from_pem(certified.authority.as_bytes()).unwrap();
        let (address, taken) = start_http2_server(&certified, vec![manner], reply()).await;
        let endmark = start_with_upstream(address, own).await;
        let reply = endmark.ask(&request(50)).await;
        assert_eq!((reply.status, text(&reply).as_str()), (200, "Yes."));
        assert_eq!(taken.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn an_oversized_http2_head_is_an_error_without_a_retry() {
    let certified = new_certificate();
    let own = Authorities::from_pem(certified.authority.as_bytes()).unwrap();
    for (kilobytes, is_read) in [(24, true), (40, false), (400, false)] {
        let behaviors = vec![RequestHandling::LongHead(kilobytes)];
        let (address, taken) = start_http2_server(&certified, behaviors, reply()).await;
        let endmark = start_with_upstream(address, own.clone()).await;
        let answer = endmark.ask(&request(50)).await;
        let answer_text = answer.text();
        if is_read {
            assert_eq!(text(&answer), "Yes.", "{answer_text}");
        } else {
            assert_eq!(
                (answer.status, answer.json()["error"]["type"].as_str()),
                (502, Some("endmark_upstream_unreadable")),
                "{answer_text}"
            );
            assert!(answer_text.contains("32768 bytes"), "{answer_text}");
        }
        assert_eq!(taken.load(Ordering::SeqCst), 1, "{kilobytes}: {answer_text}");
    }
}

#[tokio::test]
async fn a_proxy_gets_the_whole_address_and_credentials() {
    let proxy = ForwardProxy::start(Some("Basic bWU6c2VjcmV0")).await;
    let through = |settings: &mut endmark_gateway::Settings, userinfo: &str| {
        settings.upstreams[0].proxy = Some(format!("http://{userinfo}{}", proxy.address()).parse().unwrap());
    };
    let endmark =
        Endmark::start_with(ScriptedModel::new("Yes."), |settings| through(settings, "me:secret@")).await;
    let answer = endmark.ask(&request(50)).await;
    assert_eq!((answer.status, text(&answer).as_str()), (200, "Yes."), "{}", answer.text());
    let seen = proxy.requests().remove(0);
    assert_eq!(seen.line, format!("POST {}/chat/completions HTTP/1.1", endmark.upstream.base_url()));
    assert_eq!(seen.authorization.as_deref(), Some("Basic bWU6c2VjcmV0"));
    assert!(endmark.upstream.requests()[0].header("proxy-authorization").is_none());

    // Proxy credentials from the client must not reach the gateway's own proxy.
    let endmark = Endmark::start_with(ScriptedModel::new("Yes."), |settings| through(settings, "")).await;
    let answer = endmark.chat(&request(50)).header("proxy-authorization", "Basic bWU6c2VjcmV0").send().await;
    assert_eq!(answer.status, 407);
    assert_eq!(endmark.calls(), 0);
}

#[tokio::test]
async fn tls_passes_through_the_proxy_tunnel_unread() {
    let certified = new_certificate();
    let (address, _) = start_http2_server(&certified, Vec::new(), reply()).await;
    let proxy = ForwardProxy::start(Some("Basic bWU6c2VjcmV0")).await;
    let through = async |userinfo: &str| {
        Endmark::start_with(Script::new(), |settings| {
            settings.upstreams = vec![Target {
                authorities: Authorities::from_pem(certified.authority.as_bytes()).unwrap(),
                proxy: Some(format!("http://{userinfo}{}", proxy.address()).parse().unwrap()),
                ..Target::new("secure", format!("https://{address}/v1").parse().unwrap())
            }];
        })
        .await
    };
    let endmark = through("me:secret@").await;
    assert_eq!(text(&endmark.ask(&request(50)).await), "Yes.");
    let seen = proxy.requests();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].line, format!("CONNECT {address} HTTP/1.1"));

    let refused = through("me:wrong@").await.ask(&request(50)).await;
    assert_eq!(refused.status, 502);
    let message = refused.text();
    assert!(message.contains("proxy authorization required") && message.contains("***@"), "{message}");
    assert!(!message.contains("wrong"), "{message}");
}

#[tokio::test]
async fn an_unreachable_proxy_is_named() {
    let closed_port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for scheme in ["http", "https"] {
        let endmark = Endmark::start_with(Script::new().default_answer(Answer::html(200)), |settings| {
            settings.retry.max_retries = 0;
            settings.upstreams = vec![Target {
                proxy: Some(format!("http://me:secret@{closed_port}").parse().unwrap()),
                ..Target::new("far", format!("{scheme}://upstream.invalid/v1").parse().unwrap())
            }];
        })
        .await;
        let reply = endmark.ask(&request(50)).await;
        assert_eq!(reply.status, 502);
        let message = reply.text();
        assert!(message.contains(&format!("through the proxy http://***@{closed_port}")), "{message}");
    }
}

#[test]
fn a_file_without_a_certificate_is_refused_with_the_reason() {
    let error = |text: &str| Authorities::from_pem(text.as_bytes()).unwrap_err().to_string();
    assert!(error("").contains("no certificate"));
    assert!(
        error("-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n").contains("no certificate")
    );
    assert!(
        error("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n").contains("certificate 1 ")
    );
    assert!(error("-----BEGIN CERTIFICATE-----\nAA==\n").contains("PEM"));
}
