//! The real process under load: slow readers, and clients that only occupy a connection.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{Answer, Request, Script, Upstream, chat_reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::sleep;

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

/// Number of slow readers, unless `ENDMARK_TEST_SLOW_READERS` is set.
const DEFAULT_SLOW_READERS: u64 = 100;

/// Maximum growth of the process for each reader, in KiB: the received reply, which is kept for a recovery,
/// and the data in transit.
///
/// Without backpressure it would be 50 MiB. In a release build, 1,000 readers must fit into 160 MiB. Other
/// builds need more for the same data.
const MAX_GROWTH_PER_READER_KIB: u64 = if cfg!(debug_assertions) { 240 } else { 147 };

/// Maximum growth of the process for all readers together, in KiB.
const MAX_SHARED_GROWTH_KIB: u64 = 16 * 1024;

/// Number of idle sockets, unless `ENDMARK_TEST_HELD_SOCKETS` is set.
const DEFAULT_IDLE_SOCKETS: usize = 200;

/// Number of bytes that the upstream sends to each reader.
const REPLY_BYTES: usize = 50 * 1024 * 1024;

fn number_from_variable<N: std::str::FromStr>(name: &str, or: N) -> N {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(or)
}

/// Starts an upstream that sends 50 MiB to every client, as fast as it can.
async fn start_flooding_upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(send_endlessly(stream));
        }
    });
    address
}

async fn send_endlessly(mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = [0; 4096];
    let _ = stream.read(&mut request).await?;
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head).await?;
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": {"content": "x".repeat(2_000)}, "finish_reason": null}]});
    let event = format!("data: {chunk}\n\n").repeat(8);
    let mut sent = 0;
    while sent < REPLY_BYTES {
        stream.write_all(event.as_bytes()).await?;
        sent += event.len();
    }
    Ok(())
}

/// Opens a stream and reads 1 KB of it per second, for this long.
async fn read_slowly(address: SocketAddr, time: Duration) -> usize {
    let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"Go."}]}"#;
    // A small receive buffer, because buffers of the operating system must not affect the result.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8 * 1024).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let (began, mut read) = (Instant::now(), 0);
    let mut kilobyte = [0; 1024];
    while began.elapsed() < time {
        let taken = stream.read(&mut kilobyte).await.unwrap();
        assert_ne!(taken, 0, "the gateway gave up a slow reader");
        read += taken;
        sleep(Duration::from_secs(1)).await;
    }
    read
}

#[test]
fn slow_readers_slow_their_upstreams_without_using_memory() {
    in_runtime(async {
        let readers = number_from_variable("ENDMARK_TEST_SLOW_READERS", DEFAULT_SLOW_READERS);
        let upstream = start_flooding_upstream().await;
        let place = TestFolder::new();
        let served = ServeProcess::start(&place, &["--upstream", &format!("http://{upstream}/v1")]);
        Request::get(served.address, "/endmark/readyz").send().await.read().await;
        let before = served.status_kib("VmRSS");
        let time = Duration::from_secs(number_from_variable("ENDMARK_TEST_SLOW_SECONDS", 10));
        let clients: Vec<_> = (0..readers).map(|_| tokio::spawn(read_slowly(served.address, time))).collect();
        for client in clients {
            assert!(client.await.unwrap() > 0);
        }
        let growth = served.status_kib("VmHWM") - before;
        println!(
            "{readers} clients at 1 KiB/s before 50 MiB each: the process grew by {} MiB",
            growth / 1024
        );
        assert!(
            growth <= MAX_SHARED_GROWTH_KIB + readers * MAX_GROWTH_PER_READER_KIB,
            "it grew by {growth} KiB"
        );
    });
}

/// An attack: its name, the bytes that it sends first, and the bytes that it repeats.
type Attack = (&'static str, &'static str, &'static str);

const ATTACKS: [Attack; 3] = [
    ("slow heads", "GET / HTTP/1.1\r\nhost: localhost\r\n", "x: 1\r\n"),
    (
        "slow bodies",
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 8192\r\n\r\n",
        "x",
    ),
    ("silence", "", ""),
];

/// Occupies a connection until the gateway closes it, and returns how long it was open.
async fn occupy_connection(address: SocketAddr, (_, first, then): Attack) -> Duration {
    let began = Instant::now();
    let Ok(mut stream) = TcpStream::connect(address).await else { return began.elapsed() };
    let _ = stream.write_all(first.as_bytes()).await;
    let mut buffer = [0; 512];
    loop {
        tokio::select! {
            read = stream.read(&mut buffer) => if !read.is_ok_and(|read| read > 0) { return began.elapsed() },
            () = sleep(Duration::from_millis(500)) => { let _ = stream.write_all(then.as_bytes()).await; }
        }
    }
}

#[test]
fn held_connections_are_closed_and_real_clients_are_served() {
    in_runtime(async {
        let held = number_from_variable("ENDMARK_TEST_HELD_SOCKETS", DEFAULT_IDLE_SOCKETS);
        let answer = Answer::json(200, &chat_reply("honest", "stop", (1, 1)));
        let upstream = Upstream::start(Script::new().default_answer(answer)).await;
        // The test does not read the log, so a full pipe would block the gateway.
        let place = TestFolder::new().with_variable("ENDMARK_LOG", "off");
        let base_url = upstream.base_url();
        let connections = format!("limits.connections={}", held / 2);
        let limits = ["limits.header_seconds=6", "limits.body_seconds=6", connections.as_str()];
        let sets = limits.iter().flat_map(|limit| ["--set", limit]);
        let arguments: Vec<&str> = ["--upstream", base_url.as_str()].into_iter().chain(sets).collect();
        let served = ServeProcess::start(&place, &arguments);
        for attack in ATTACKS {
            let holders: Vec<_> =
                (0..held).map(|_| tokio::spawn(occupy_connection(served.address, attack))).collect();
            let (mut served_at_once, mut sent_away) = (0, 0);
            while !holders.iter().all(tokio::task::JoinHandle::is_finished) {
                let body = json!({"model": "m", "messages": [{"role": "user", "content": "Go."}]});
                let request = Request::post(served.address, "/v1/chat/completions").json(&body);
                match request.try_send().await {
                    Ok(reply) if reply.status == 200 => served_at_once += 1,
                    _ => sent_away += 1,
                }
                sleep(Duration::from_millis(50)).await;
            }
            println!(
                "{}: {held} sockets; {served_at_once} honest requests served, {sent_away} sent away",
                attack.0
            );
            assert!(served_at_once > sent_away, "{}: {served_at_once} to {sent_away}", attack.0);
            for holder in holders {
                let time = holder.await.unwrap();
                assert!(time < Duration::from_secs(25), "{}: held for {time:?}", attack.0);
            }
        }
    });
}
