//! A forward proxy, which forwards requests to other servers and opens tunnels to them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::http1::find_header;

/// A running proxy. Dropping it stops the proxy.
pub struct ForwardProxy {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<ProxiedRequest>>>,
    task: JoinHandle<()>,
}

/// A request that the proxy received, either for a tunnel or to be forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxiedRequest {
    /// The request line.
    pub line: String,
    /// The value of `Proxy-Authorization`.
    pub authorization: Option<String>,
}

impl ForwardProxy {
    /// Starts on a free port. With `wanted`, rejects clients with any other `Proxy-Authorization`.
    pub async fn start(wanted: Option<&'static str>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a loopback port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let seen = Arc::new(Mutex::default());
        let record = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, wanted, Arc::clone(&record)));
            }
        });
        Self { address, requests: seen, task }
    }

    /// Returns the proxy's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the first request of each connection.
    pub fn requests(&self) -> Vec<ProxiedRequest> {
        self.requests.lock().expect("no test panics with it").clone()
    }
}

impl Drop for ForwardProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut client: TcpStream,
    wanted: Option<&'static str>,
    record: Arc<Mutex<Vec<ProxiedRequest>>>,
) -> io::Result<()> {
    let head = read_head(&mut client).await?;
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let authorization = find_header(&headers, "proxy-authorization").map(str::to_owned);
    let is_welcome = wanted.is_none() || authorization.as_deref() == wanted;
    record.lock().expect("no test panics with it").push(ProxiedRequest { line: line.clone(), authorization });
    if !is_welcome {
        return client.write_all(b"HTTP/1.1 407 Who are you?\r\ncontent-length: 0\r\n\r\n").await;
    }
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if method == "CONNECT" {
        let mut server = TcpStream::connect(target).await?;
        client.write_all(b"HTTP/1.1 200 Go on\r\n\r\n").await?;
        copy_bidirectional(&mut client, &mut server).await?;
        return Ok(());
    }
    let rest = target.strip_prefix("http://").expect("a proxy gets the whole address");
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut server = TcpStream::connect(place).await?;
    let own = head.replacen(target, &format!("/{path}"), 1);
    let kept: Vec<&str> =
        own.split("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with("proxy-")).collect();
    server.write_all(kept.join("\r\n").as_bytes()).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// Reads the head up to its empty line, and no further bytes.
async fn read_head(client: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    Ok(String::from_utf8(head).expect("a head is UTF-8"))
}
