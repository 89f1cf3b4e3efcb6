//! Bytes as people and other programs write them down.

/// Two lower-case digits for each byte, as hashes are written.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_two_digits() {
        assert_eq!(hexadecimal(&[0, 9, 0xab, 0xff]), "0009abff");
    }
}
