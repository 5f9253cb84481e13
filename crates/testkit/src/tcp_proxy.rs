//! A TCP proxy whose link can fail on command: it can cut, freeze or delay connections, or lead to another
//! server.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The state of a proxy's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// Bytes are forwarded.
    Up,
    /// Bytes are forwarded after this delay in each direction.
    Slow(Duration),
    /// A partition: connections stay open and new ones are accepted, but no bytes are forwarded.
    Frozen,
    /// All connections are closed, and new ones are closed immediately.
    Cut,
}

/// The state of the link, and the server to which new connections lead.
type ProxyState = (LinkState, SocketAddr);

/// A running proxy with its own thread. Dropping it stops the proxy.
pub struct TcpProxy {
    address: SocketAddr,
    /// `None` stops the proxy.
    state: watch::Sender<Option<ProxyState>>,
    thread: Option<JoinHandle<()>>,
}

impl TcpProxy {
    /// Starts on a free port. The link leads to the server on this port of the loopback address.
    pub fn start(port: u16) -> Self {
        let state = watch::Sender::new(Some((LinkState::Up, (Ipv4Addr::LOCALHOST, port).into())));
        let listener =
            std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let changes = state.subscribe();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let thread = thread::spawn(move || runtime.block_on(accept(listener, changes)));
        Self { address, state, thread: Some(thread) }
    }

    /// Returns the port on the loopback address.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Changes the state of the link, which also affects open connections.
    pub fn set_link(&self, link: LinkState) {
        self.state.send_modify(|state| {
            if let Some((known, _)) = state {
                *known = link;
            }
        });
    }

    /// Redirects new connections to another server, and closes the open ones.
    pub fn redirect(&self, port: u16) {
        self.state.send_replace(Some((LinkState::Up, (Ipv4Addr::LOCALHOST, port).into())));
    }
}

impl Drop for TcpProxy {
    fn drop(&mut self) {
        self.state.send_replace(None);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: std::net::TcpListener, mut changes: watch::Receiver<Option<ProxyState>>) {
    listener.set_nonblocking(true).expect("a listener can be non-blocking");
    let listener = TcpListener::from_std(listener).expect("it is a listener");
    loop {
        let client = tokio::select! {
            accepted = listener.accept() => accepted.expect("a connection can be accepted").0,
            _ = changes.wait_for(Option::is_none) => return,
        };
        tokio::spawn(connect(client, changes.clone()));
    }
}

async fn connect(client: TcpStream, mut changes: watch::Receiver<Option<ProxyState>>) -> io::Result<()> {
    let state = changes.wait_for(|state| !matches!(state, Some((LinkState::Frozen, _)))).await;
    let Ok(Some((LinkState::Up | LinkState::Slow(_), server))) = state.map(|state| *state) else {
        return Ok(());
    };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = TcpStream::connect(server).await?.into_split();
    let is_over =
        |state: &Option<ProxyState>| state.is_none_or(|(link, now)| link == LinkState::Cut || now != server);
    let mut ending = changes.clone();
    // Both directions end together, as when a connection breaks.
    tokio::select! {
        passed = forward(&mut from_client, &mut to_server, changes.clone()) => passed,
        passed = forward(&mut from_server, &mut to_client, changes) => passed,
        _ = ending.wait_for(is_over) => Ok(()),
    }
}

/// Forwards bytes in one direction until one side closes its connection.
async fn forward(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut changes: watch::Receiver<Option<ProxyState>>,
) -> io::Result<()> {
    let mut buffer = [0; 16_384];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        let state = changes.wait_for(|state| !matches!(state, Some((LinkState::Frozen, _)))).await;
        let state = *state.map_err(io::Error::other)?;
        if let Some((LinkState::Slow(delay), _)) = state {
            tokio::time::sleep(delay).await;
        }
        to.write_all(&buffer[..read]).await?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_link_can_freeze_resume_and_break() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let proxy = TcpProxy::start(server.local_addr().unwrap().port());
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
        let mut accepted = server.accept().unwrap().0;
        let mut byte = [0];
        client.write_all(b"a").unwrap();
        accepted.read_exact(&mut byte).unwrap();
        proxy.set_link(LinkState::Frozen);
        client.write_all(b"b").unwrap();
        accepted.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert!(accepted.read_exact(&mut byte).is_err(), "it is frozen");
        accepted.set_read_timeout(None).unwrap();
        proxy.set_link(LinkState::Slow(Duration::from_millis(10)));
        accepted.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"b");
        proxy.set_link(LinkState::Cut);
        assert_eq!(accepted.read(&mut byte).unwrap_or(0), 0);
        assert_eq!(client.read(&mut byte).unwrap_or(0), 0);
    }
}
