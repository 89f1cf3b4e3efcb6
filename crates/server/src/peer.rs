//! Which process is at the other end of a connection on this machine.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The two ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connection {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
}

impl Connection {
    /// Whether the client must be on this machine, as far as the addresses show. A client here may use any address of the machine.
    fn is_local(&self) -> bool {
        let is_loopback = |address: SocketAddr| address.ip().to_canonical().is_loopback();
        is_loopback(self.client) || is_loopback(self.server) || self.client.ip() == self.server.ip()
    }
}

/// A client's socket, as the kernel lists it.
#[derive(Debug, PartialEq, Eq)]
struct Socket {
    user: u32,
    inode: u64,
}

/// Why the process at the other end may not change anything. Another user's process is no agent of ours; one of ours that cannot be
/// found has just ended, or hides.
pub(crate) fn refusal(state_directory: &Path, connection: Connection) -> Option<String> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let user = fs::metadata("/proc/self").map(|about| about.uid());
    match (socket_of(connection), user) {
        (Ok(Some(socket)), Ok(user)) if socket.user != user => None,
        (Ok(Some(socket)), Ok(_)) => {
            let owners = owners(socket.inode);
            if owners.is_empty() {
                return Some(UNKNOWN.to_owned());
            }
            owners.into_iter().find_map(|pid| towline_engine::refusal(state_directory, Some(pid)))
        }
        // A client on another machine has no socket here.
        (Ok(None), Ok(_)) if !connection.is_local() => None,
        _ => Some(UNKNOWN.to_owned()),
    }
}

const UNKNOWN: &str = "the process that asks cannot be identified";

fn socket_of(connection: Connection) -> io::Result<Option<Socket>> {
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        // A machine without IPv6 has no second table.
        let Ok(text) = fs::read_to_string(table) else { continue };
        if let Some(socket) = text.lines().skip(1).find_map(|line| read_row(line, connection)) {
            return Ok(Some(socket));
        }
    }
    Ok(None)
}

/// The socket of the client, if this row is about it.
fn read_row(line: &str, Connection { client, server }: Connection) -> Option<Socket> {
    let cells: Vec<&str> = line.split_ascii_whitespace().collect();
    let is_it = same(cells.get(1)?, client) && same(cells.get(2)?, server);
    let inode = cells.get(9)?.parse().ok()?;
    (is_it && inode != 0).then_some(Socket { user: cells.get(7)?.parse().ok()?, inode })
}

/// Whether the kernel's hexadecimal `address:port` is this one. Each 32 bits of the address are in the machine's own order.
fn same(cell: &str, address: SocketAddr) -> bool {
    let Some((ip, port)) = cell.split_once(':') else { return false };
    let words = |bytes: &[u8]| -> String {
        let word = |word: &[u8]| <[u8; 4]>::try_from(word).map(u32::from_ne_bytes).unwrap_or_default();
        bytes.chunks(4).map(|bytes| format!("{:08X}", word(bytes))).collect()
    };
    let is_ip = match address.ip() {
        IpAddr::V4(v4) => ip == words(&v4.octets()) || ip == words(&v4.to_ipv6_mapped().octets()),
        IpAddr::V6(v6) => ip == words(&v6.octets()),
    };
    is_ip && u16::from_str_radix(port, 16).ok() == Some(address.port())
}

/// The processes that have this socket open, as far as they can be looked at.
fn owners(inode: u64) -> Vec<u32> {
    let target = format!("socket:[{inode}]");
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let has_it = |pid: &u32| {
        let Ok(handles) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        handles
            .flatten()
            .any(|handle| fs::read_link(handle.path()).is_ok_and(|link| link == Path::new(&target)))
    };
    pids.filter(has_it).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_process_at_the_other_end_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let client = stream.local_addr().expect("an address");
        let connection = Connection { client, server: listener.local_addr().expect("an address") };
        let socket = socket_of(connection).expect("a table").expect("a row");
        assert!(owners(socket.inode).contains(&std::process::id()));
        let dir = tempfile::tempdir().expect("a scratch directory");
        assert_eq!(refusal(dir.path(), connection), None);
    }

    #[test]
    fn a_client_on_any_address_of_this_machine_is_looked_up() {
        let ends = |client: &str, server: &str| Connection {
            client: client.parse().expect("an address"),
            server: server.parse().expect("an address"),
        };
        let dir = tempfile::tempdir().expect("a scratch directory");
        // The kernel lets a local client of the loopback interface use another address of the machine.
        for hidden in [ends("192.0.2.7:9", "127.0.0.1:9"), ends("192.0.2.7:9", "192.0.2.7:8")] {
            assert_eq!(refusal(dir.path(), hidden).as_deref(), Some(UNKNOWN), "{hidden:?}");
        }
        assert_eq!(refusal(dir.path(), ends("192.0.2.7:9", "192.0.2.8:9")), None, "another machine");
    }

    #[test]
    fn a_process_that_hangs_up_cannot_be_identified() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = listener.local_addr().expect("an address");
        let client = TcpStream::connect(server).expect("connected").local_addr().expect("an address");
        let dir = tempfile::tempdir().expect("a scratch directory");
        assert_eq!(refusal(dir.path(), Connection { client, server }).as_deref(), Some(UNKNOWN));
    }
}
