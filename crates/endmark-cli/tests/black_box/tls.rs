//! TLS on the listener: invalid files are refused, and SIGHUP loads new ones.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

const TLS_CONFIGURATION: &str = "[tls]\ncertificate = \"certificate.pem\"\nkey = \"key.pem\"\n";

/// Returns a test certificate and its key.
fn read_certificate_and_key(name: &str) -> (Vec<u8>, Vec<u8>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls");
    let read = |file: String| std::fs::read(folder.join(file)).unwrap();
    (read(format!("{name}.pem")), read(format!("{name}.key.pem")))
}

fn write_certificate_and_key(place: &TestFolder, certificate: &[u8], key: &[u8]) {
    std::fs::write(place.path().join("certificate.pem"), certificate).unwrap();
    std::fs::write(place.path().join("key.pem"), key).unwrap();
}

/// Requests the health of the gateway, and trusts only this certificate.
async fn ask(address: SocketAddr, trusted: &[u8]) -> std::io::Result<String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let tcp = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await?;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let request = "GET /endmark/healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[test]
fn tls_uses_new_certificate_files_after_a_signal() {
    in_runtime(async {
        let ((first, first_key), (second, second_key)) =
            (read_certificate_and_key("first"), read_certificate_and_key("second"));
        let place = TestFolder::new().with_file("endmark.toml", TLS_CONFIGURATION);
        write_certificate_and_key(&place, &first, &first_key);
        let mut served = ServeProcess::start(&place, &[]);
        assert!(ask(served.address, &first).await.unwrap().starts_with("HTTP/1.1 200"));
        assert!(ask(served.address, &second).await.is_err());
        write_certificate_and_key(&place, &second, &first_key);
        served.signal("-HUP");
        assert!(served.wait_for_line("the old one stays").contains("they do not belong together"));
        assert!(ask(served.address, &first).await.is_ok());
        write_certificate_and_key(&place, &second, &second_key);
        served.signal("-HUP");
        served.wait_for_line("was reloaded");
        assert!(ask(served.address, &second).await.unwrap().starts_with("HTTP/1.1 200"));
        assert_eq!(served.stop("-TERM").0, Some(0));
    });
}

#[test]
fn unusable_tls_files_are_named_with_the_reason() {
    let (certificate, key) = read_certificate_and_key("first");
    let (_, other_key) = read_certificate_and_key("second");
    let place = TestFolder::new().with_file("endmark.toml", TLS_CONFIGURATION);
    let run = |place: &TestFolder| {
        let run = place.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!(run.code, 2, "{}", run.errors);
        run.errors
    };
    assert!(run(&place).contains("the certificate `certificate.pem` cannot be read"));
    write_certificate_and_key(&place, &key, &key);
    assert!(run(&place).contains("`certificate.pem` has no CERTIFICATE section"));
    write_certificate_and_key(&place, &certificate, &certificate);
    assert!(run(&place).contains("the key `key.pem` cannot be read: it has no PRIVATE KEY section"));
    write_certificate_and_key(&place, &certificate, &other_key);
    assert!(run(&place).contains("they do not belong together"));
    let half = TestFolder::new().with_file("endmark.toml", "[tls]\nkey = \"key.pem\"\n");
    assert!(run(&half).contains("`tls.key` must be set together with `tls.certificate`"));
}
