//! SHA-256 as it is written down.

use std::fmt::Write;

use sha2::{Digest, Sha256};

pub(crate) fn hexadecimal(hash: Sha256) -> String {
    let mut text = String::with_capacity(64);
    for byte in hash.finalize() {
        // A string takes everything.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
