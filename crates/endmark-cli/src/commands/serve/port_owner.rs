//! Finds the process that listens on an occupied port, as far as the system shows it.

use std::fs;
use std::net::SocketAddr;

/// The state of listening sockets in the tables of `/proc/net`.
const LISTEN_STATE: &str = "0A";

/// Returns the name and id of a process that listens on this port.
///
/// Returns `None` for another user's process, because its files are hidden.
pub(super) fn find_listening_process(address: SocketAddr) -> Option<String> {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().filter_map(|path| fs::read_to_string(path).ok());
    let sockets: Vec<String> = tables.flat_map(|table| listening_sockets(&table, address.port())).collect();
    let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).find_map(|process| {
        let files = fs::read_dir(format!("/proc/{process}/fd")).ok()?;
        let mut links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
        links.find(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))?;
        let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
        Some(format!("`{}` (process {process})", name.trim_end()))
    })
}

/// Returns the sockets that listen on a port, in the form of the links in `/proc/PID/fd`.
fn listening_sockets(table: &str, port: u16) -> Vec<String> {
    let ending = format!(":{port:04X}");
    let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
    let listeners = rows.filter(|row| {
        row.get(1).is_some_and(|local| local.ends_with(&ending)) && row.get(3) == Some(&LISTEN_STATE)
    });
    listeners.filter_map(|row| row.get(9).map(|inode| format!("socket:[{inode}]"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_listening_process_is_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:102D 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 x 100 0 0 10 0\n\
            1: 0100007F:102D 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 222 1 x 20 4 30 10 -1\n";
        assert_eq!(listening_sockets(table, 0x102D), ["socket:[111]"]);
        assert!(listening_sockets(table, 80).is_empty());
    }
}
