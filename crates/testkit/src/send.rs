//! Sends a response, including its faults.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::answer::{Answer, Fault, FaultAt, Framing};
use crate::upstream::ResponseOutcome;

/// Pause before a reset, in which written data can arrive. A reset may discard data in flight.
const RESET_DELAY: Duration = Duration::from_millis(30);

/// Sends the response. Returns the outcome, and whether the connection can be reused.
pub(crate) async fn send(stream: &mut TcpStream, answer: &Answer) -> (ResponseOutcome, bool) {
    match try_send(stream, answer).await {
        Ok(SendResult::Whole) => (ResponseOutcome::Delivered, answer.framing != Framing::UntilClose),
        Ok(SendResult::Faulted) => (ResponseOutcome::Faulted, false),
        Ok(SendResult::ClientGone) | Err(_) => (ResponseOutcome::ClientGone, false),
    }
}

enum SendResult {
    Whole,
    Faulted,
    ClientGone,
}

async fn try_send(stream: &mut TcpStream, answer: &Answer) -> io::Result<SendResult> {
    if !is_connected_after(stream, answer.delay_before_head).await {
        return Ok(SendResult::ClientGone);
    }
    if let Some((FaultAt::Head, fault)) = answer.fault {
        return cause_fault(stream, fault).await;
    }
    stream.write_all(head(answer).as_bytes()).await?;
    if !is_connected_after(stream, answer.delay_after_head).await {
        return Ok(SendResult::ClientGone);
    }
    let mut left = match answer.fault {
        Some((FaultAt::Body(after), _)) => after,
        _ => usize::MAX,
    };
    for part in &answer.parts {
        for piece in part.chunks(answer.split_bytes.unwrap_or(part.len()).max(1)) {
            if !is_connected_after(stream, answer.delay_between_parts).await {
                return Ok(SendResult::ClientGone);
            }
            let piece = &piece[..piece.len().min(left)];
            left -= piece.len();
            if !piece.is_empty() {
                write_piece(stream, piece, answer.framing).await?;
            }
            if let (0, Some((_, fault))) = (left, answer.fault) {
                return cause_fault(stream, fault).await;
            }
        }
    }
    if let Some((_, fault)) = answer.fault {
        return cause_fault(stream, fault).await;
    }
    if answer.framing == Framing::Chunked {
        stream.write_all(b"0\r\n\r\n").await?;
    }
    Ok(SendResult::Whole)
}

fn head(answer: &Answer) -> String {
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", answer.status);
    let framing = match answer.framing {
        Framing::Length => format!("content-length: {}\r\n", answer.body().len()),
        Framing::Chunked => "transfer-encoding: chunked\r\n".to_owned(),
        Framing::UntilClose => "connection: close\r\n".to_owned(),
    };
    for (name, value) in &answer.headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head + &framing + "\r\n"
}

async fn write_piece(stream: &mut TcpStream, piece: &[u8], framing: Framing) -> io::Result<()> {
    if framing == Framing::Chunked {
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend_from_slice(piece);
        chunk.extend_from_slice(b"\r\n");
        stream.write_all(&chunk).await
    } else {
        stream.write_all(piece).await
    }
}

async fn cause_fault(stream: &mut TcpStream, fault: Fault) -> io::Result<SendResult> {
    match fault {
        Fault::Reset => {
            sleep(RESET_DELAY).await;
            stream.set_zero_linger()?;
        }
        Fault::Close => stream.shutdown().await?,
        Fault::Stall => {
            wait_for_close(stream).await;
            return Ok(SendResult::ClientGone);
        }
        Fault::MalformedChunk => {
            stream.write_all(b"not-a-size\r\n").await?;
            stream.shutdown().await?;
        }
    }
    Ok(SendResult::Faulted)
}

/// Waits. Returns `false` as soon as the client has disconnected.
async fn is_connected_after(stream: &TcpStream, wait: Duration) -> bool {
    if wait.is_zero() {
        return true;
    }
    tokio::select! {
        () = sleep(wait) => true,
        () = wait_for_close(stream) => false,
    }
}

/// Returns when the client has closed or reset the connection.
async fn wait_for_close(stream: &TcpStream) {
    // Zero bytes mean that the client closed the connection, and an error means that it was reset. A
    // pipelined request is neither.
    if let Ok(1..) = stream.peek(&mut [0]).await {
        std::future::pending::<()>().await;
    }
}
