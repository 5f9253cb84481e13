//! Sends bytes that no correct client would send.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Far longer than a busy machine needs.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection that sends only the bytes that it is given.
pub(crate) struct Raw(pub(crate) TcpStream);

impl Raw {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    /// Sends bytes. A server that has already closed is not an error.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.0.write_all(bytes.as_ref()).await;
        self
    }

    /// Returns all bytes until the server closes.
    pub(crate) async fn read_rest(&mut self) -> String {
        let mut bytes = Vec::new();
        let _ = timeout(READ_TIMEOUT, self.0.read_to_end(&mut bytes)).await.unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Reads up to and including this text.
    pub(crate) async fn read_until(&mut self, text: &str) -> String {
        let mut bytes = Vec::new();
        while !String::from_utf8_lossy(&bytes).contains(text) {
            let mut byte = [0; 1];
            let read = timeout(READ_TIMEOUT, self.0.read(&mut byte)).await.unwrap().unwrap();
            assert_ne!(read, 0, "it ended with: {}", String::from_utf8_lossy(&bytes));
            bytes.push(byte[0]);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Returns the server's answer to these bytes, until it closes.
pub(crate) async fn answer(address: SocketAddr, bytes: impl AsRef<[u8]>) -> String {
    Raw::connect(address).await.send(bytes).await.read_rest().await
}

/// Returns the status of an answer and the type of its error.
pub(crate) fn parse_refusal(answer: &str) -> (u16, String) {
    let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let error = serde_json::from_str::<Value>(body).unwrap_or_default()["error"].clone();
    assert!(
        !error["message"].as_str().unwrap_or_default().is_empty(),
        "no error of the provider's shape: {answer}"
    );
    (status, error["type"].as_str().unwrap_or_default().to_owned())
}
